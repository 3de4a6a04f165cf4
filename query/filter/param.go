package filter

import "strings"

// paramEscaper is the escaping of ClickHouse's TabSeparated format, in which it
// reads every parameter: a bare tab or newline would end the value.
var paramEscaper = strings.NewReplacer(
	`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\x00", `\0`,
)

// ParamString encodes a text as the value of a {name:String} parameter.
func ParamString(s string) string { return paramEscaper.Replace(s) }

// quoteEscaper is the escaping of a quoted text inside an array literal.
var quoteEscaper = strings.NewReplacer(
	`'`, `\'`, `\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\b", `\b`, "\f", `\f`, "\x00", `\0`,
)

// ParamArray encodes texts as the value of a {name:Array(…)} parameter. Texts,
// UUIDs and times are quoted, numbers and truth values must be bare. Unlike a
// String, an array is not unescaped before it is read, so it is escaped once.
func ParamArray(texts []string, quoted bool) string {
	if !quoted {
		return "[" + strings.Join(texts, ",") + "]"
	}
	var b strings.Builder
	b.WriteByte('[')
	for i, s := range texts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("'" + quoteEscaper.Replace(s) + "'")
	}
	b.WriteByte(']')
	return b.String()
}
