"""Checks a document against a JSON Schema: the keywords that docs/reference/report.schema.json uses, and no others."""

TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "integer": int, "number": (int, float)}
KEYWORDS = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "minimum", "items", "required", "properties",
            "additionalProperties"}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not isinstance(value, bool)


def check_object(value, schema, top, at):
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}: there is no '{name}'"
    for name, item in value.items():
        if name in properties:
            yield from check(item, properties[name], top, f"{at}.{name}")
        elif others is False:
            yield f"{at}: '{name}' is not in the schema"
        elif others is not True:
            yield from check(item, others, top, f"{at}.{name}")


def check(value, schema, top, at="$"):
    """What is wrong, one text a fault."""
    unknown = set(schema) - KEYWORDS
    if unknown:
        yield f"{at}: this checker does not know {sorted(unknown)}"
    if "$ref" in schema:
        yield from check(value, top["$defs"][schema["$ref"].removeprefix("#/$defs/")], top, at)
    names = schema.get("type", [])
    if names and not any(is_type(value, n) for n in ([names] if isinstance(names, str) else names)):
        yield f"{at}: {value!r} is not of type {names}"
    elif "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not {schema.get('const', schema.get('enum'))!r}"
    elif "minimum" in schema and value < schema["minimum"]:
        yield f"{at}: {value!r} is below {schema['minimum']}"
    elif isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from check(item, schema["items"], top, f"{at}[{i}]")
    elif isinstance(value, dict):
        yield from check_object(value, schema, top, at)
