# The results of lower-models in Markdown, for a pull request or the page of a job.

# In a cell of a table, whatever is in it.
def cell: explode | map(if . < 32 or . == 127 then 65533 else . end) | implode
  | gsub("(?<c>[\\\\`*_\\[\\]~#])"; "\\\(.c)") | @html | gsub("\\|"; "&#124;");
def bytes: if . < 1024 then "\(.) B" elif . < 1048576 then "\(. / 102.4 | round / 10) KiB" else "\(. / 104857.6 | round / 10) MiB" end;
def number(what): "\(.) \(what)\(if . == 1 then "" else "s" end)";
def calls: [(.delegate_calls | select(. > 0) | number("delegate")), (.kernel_calls | select(. > 0) | number("kernel"))] | join(", ");
def ms: "\(.seconds * 1000 | round) ms";
def reason: .messages | map(select(.severity == "error"))[0];

"## Models\n",
"\(length) models, \(map(select(.code != 0)) | length) failed, \(map(select(.summary.cache == "hit")) | length) from the cache\n",
"| model | | program | arena | delegates' memory | calls | time | cache |",
"|---|---|---:|---:|---:|---|---:|---|",
(.[] | "| \(.name | cell) | " + if .code == 0
  then .summary as $s | "ok | \($s.file_bytes | bytes) | \($s.arena_bytes | bytes) | \($s.packed_bytes_estimate + $s.workspace_bytes_estimate | bytes) | \(
    $s | calls) | \(ms) | \($s.cache) |"
  else "**failed** | | | | | \(ms) | |" end),
(select(any(.code != 0)) | "\n### Failures\n",
  (.[] | select(.code != 0) | "- \(.name | cell): \(reason | "\(.code // "") \(.message // "no message")" | cell)"))
