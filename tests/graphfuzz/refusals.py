"""What `etc` may refuse. A graph that it refuses for another reason is a failure.

(code of the diagnostic, pattern of its message, why that is right or known)
"""

import re

ACCEPTED = [
    ("E0303", r"needs? (a )?fixed (spatial )?sizes?", "the operator needs a size that is known when lowering"),
    ("E0303", r"Unique takes .* known when lowering", "the operator needs a size that is known when lowering"),
    ("E0303", r"antialias with a size not known", "the operator needs a size that is known when lowering"),
    ("E0403", r"shapes do not broadcast: [a-z]|to broadcast differ: .*\bs\d", "a size that the data decide would have to be 1"),
    ("E0504", r"convolutions with three spatial dimensions have no kernel", "volumes with symbolic sizes have no kernel"),
    ("E0303", r"Indices of a 3D MaxPool are not supported", "indices of a maximum in a volume have no kernel"),
    ("E0303", r"the loop has no steps, and output", "a loop without steps gives no shape to what it collects"),
]


def reason(code, message):
    """The reason, or None."""
    for accepted, pattern, why in ACCEPTED:
        if code == accepted and re.search(pattern, message):
            return why
    return None
