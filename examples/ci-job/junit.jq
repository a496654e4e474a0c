# The results of lower-models as JUnit XML: a test case a model, what etc said of it as the text of the failure.

# XML 1.0 has no place for most control characters; lines stay lines within attributes as well.
def xml: explode | map(if (. < 32 and . != 9 and . != 10) or . == 65534 or . == 65535 then 65533 else . end) | implode
  | @html | gsub("\t"; "&#9;") | gsub("\n"; "&#10;");
def text: "\(.severity)\(if .code then "[\(.code)]" else "" end): \(.message)\(if .node != null and .node != "" then "\n  at node '\(.node)' (\(.op))" else "" end)\(
  (.notes // []) | map("\n  note: \(.)") | join(""))\(if (.hint // "") != "" then "\n  hint: \(.hint)" else "" end)";
def count(f): map(select(f)) | length;
def seconds: . * 1000 | round / 1000;
def outcome: if .code == 0 then "" elif .code == 1 then "failure" else "error" end;

"<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
"<testsuites>",
"<testsuite name=\"etc lower\" tests=\"\(length)\" failures=\"\(count(outcome == "failure"))\" errors=\"\(count(outcome == "error"))\" skipped=\"0\" time=\"\(map(.seconds) | add // 0 | seconds)\">",
(.[] | outcome as $outcome | (.messages | map(select(.severity == "error"))[0]) as $first
  | "<testcase classname=\"etc.lower\" name=\"\(.name | xml)\" time=\"\(.seconds | seconds)\">",
    (select($outcome != "") | "<\($outcome) type=\"\($first.code // "exit \(.code)" | xml)\" message=\"\($first.message // "exit \(.code)" | xml)\">\(
       .messages | map(text) | join("\n") | xml)</\($outcome)>"),
    (select($outcome == "" and (.messages | length) > 0) | "<system-out>\(.messages | map(text) | join("\n") | xml)</system-out>"),
    "</testcase>"),
"</testsuite>",
"</testsuites>"
