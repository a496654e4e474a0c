"""What `etc` may refuse. A graph that it refuses for another reason is a failure.

(code of the diagnostic, pattern of its message, why that is right or known)
"""

import re

ACCEPTED = [
]


def reason(code, message):
    """The reason, or None."""
    for accepted, pattern, why in ACCEPTED:
        if code == accepted and re.search(pattern, message):
            return why
    return None
