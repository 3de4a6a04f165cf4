package tables

import (
	"fmt"
	"net/url"
	"strings"
)

// ClickHouse takes a parameter as a field of a form: 1,000 of them and 128 KiB of each
// (http_max_fields, http_max_field_value_size), an address of 1 MiB (http_max_uri_size), and a
// statement of 256 KiB unless it says otherwise (max_query_size). The first three it decides before
// it knows the statement's own settings. Conditions of erasures can need more. So where
// parameters are many or large their values are written into the statement, and a long statement
// does not travel in the address: it is the body, or fields of the form beside fresh blocks, or the
// first block of what an insert brings.
const (
	// maxParams is how many parameters travel as fields: a tenth of what a form may have. A statement's
	// settings and pieces, and what a proxy adds, are fields too.
	maxParams = 100
	// maxParamBytes is how long they may be together. They are in the address beside the statement, where
	// each byte may take three: both at their longest take a third of its 1 MiB. One of this length is an
	// eighth of what a field takes.
	maxParamBytes = 16 << 10
	// maxAddressBytes is the longest statement in an address, which may grow threefold there: three
	// quarters of what a field takes.
	maxAddressBytes = 96 << 10
	// plainBytes is the longest statement that does without longSettings. Even the two bytes of -x are
	// three elements, a function, its list and a name; ClickHouse takes 50,000 (max_ast_elements).
	plainBytes = 16 << 10
	// pieceBytes is how much of a statement is one field of a form: a quarter of what a field takes.
	// 1,000 of them are more than any statement has (see ledger.MaxTopicBytes).
	pieceBytes = 32 << 10
)

// longSettings let a statement be as long as the erasures of a topic make it, and keep whom it
// names out of the server's query log.
var longSettings = map[string]string{
	"max_query_size":            "134217728",
	"max_ast_elements":          "20000000",
	"max_expanded_ast_elements": "20000000",
	"max_parser_backtracks":     "0",
	"log_queries":               "0",
	"compile_expressions":       "0", // machine code for a thousand conditions takes longer than they do
}

// logOff keeps a statement out of the server's query log: what values it has in its text may name a person who was erased.
var logOff = map[string]string{"log_queries": "0"}

// carried is a condition, or a statement, with its parameters, such that these may travel as fields:
// where they are too many or too large, their values are in the text, and none is left. It adds to a request's fields what such
// a statement needs.
func carried(q url.Values, c Condition) (Condition, error) {
	size := 0
	for k, v := range c.Params {
		size += len(k) + len(v)
	}
	if len(c.Params) > maxParams || size > maxParamBytes {
		sql, err := written(c.SQL, c.Params)
		if err != nil {
			return Condition{}, err
		}
		c = Condition{SQL: sql}
		set(q, logOff)
	}
	if len(c.SQL) > plainBytes {
		set(q, longSettings)
	}
	return c, nil
}

func set(q url.Values, settings map[string]string) {
	for k, v := range settings {
		q.Set(k, v)
	}
}

// setParams adds parameters to a request's fields.
func setParams(q url.Values, params map[string]string) {
	for k, v := range params {
		q.Set("param_"+k, v)
	}
}

// written is a statement with the values of its parameters in place of {name:Type}, as ClickHouse
// would read them. What stands within quotes is left as it is.
func written(sql string, params map[string]string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(sql); {
		switch c := sql[i]; c {
		case '\'', '`', '"':
			end := quotedEnd(sql, i)
			b.WriteString(sql[i:end])
			i = end
		case '{':
			name, typ, ok := strings.Cut(sql[i+1:], ":")
			to := strings.IndexByte(typ, '}')
			value, known := params[name]
			if !ok || to < 0 || !known {
				b.WriteByte(c)
				i++
				continue
			}
			text, err := literalOf(value, typ[:to])
			if err != nil {
				return "", fmt.Errorf("parameter %s: %w", name, err)
			}
			b.WriteString(text)
			i += 1 + len(name) + 1 + to + 1
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), nil
}

// quotedEnd is where the quoted text that begins at a place ends.
func quotedEnd(s string, at int) int {
	for i := at + 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[at]:
			return i + 1
		}
	}
	return len(s)
}

// literalOf is the value of a parameter as SQL.
func literalOf(value, typ string) (string, error) {
	if strings.HasPrefix(typ, "Array(") {
		elements, err := arrayElements(value)
		if err != nil {
			return "", err
		}
		list := "['" + strings.Join(elements, "','") + "']"
		switch {
		case len(elements) == 0:
			return fmt.Sprintf("CAST([], '%s')", literal.Replace(typ)), nil
		case typ == "Array(String)":
			return list, nil
		}
		return fmt.Sprintf("CAST(%s, '%s')", list, literal.Replace(typ)), nil
	}
	text, err := escapedText(value, false)
	if err != nil {
		return "", err
	}
	if typ == "String" {
		return "'" + text + "'", nil
	}
	return fmt.Sprintf("CAST('%s', '%s')", text, literal.Replace(typ)), nil
}

// escapedText checks a text that is escaped as ClickHouse reads parameters, and returns it such that
// it may stand between quotes. quoted: it stood between quotes, so that none may be bare.
func escapedText(s string, quoted bool) (string, error) {
	bare := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) || !strings.ContainsRune(`\'tnrbf0`, rune(s[i])) {
				return "", fmt.Errorf("%w: %.40q", errEscape, s)
			}
		case '\'':
			if bare = true; quoted {
				return "", fmt.Errorf("%w: %.40q", errEscape, s)
			}
		}
	}
	if !bare {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' {
			b.WriteByte('\\')
		} else if s[i] == '\\' {
			b.WriteByte(s[i])
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), nil
}

// arrayElements are the elements of an array as a parameter has it: what may stand between quotes.
func arrayElements(s string) (out []string, err error) {
	inner, begins := strings.CutPrefix(s, "[")
	inner, ends := strings.CutSuffix(inner, "]")
	if !begins || !ends {
		return nil, fmt.Errorf("%w: %.40q", errEscape, s)
	}
	for rest := inner; rest != ""; {
		var element string
		if rest[0] == '\'' {
			end := quotedEnd(rest, 0)
			if end < 2 || rest[end-1] != '\'' {
				return nil, fmt.Errorf("%w: %.40q", errEscape, rest)
			}
			element, rest = rest[1:end-1], rest[end:]
		} else {
			end := strings.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			element, rest = rest[:end], rest[end:]
		}
		if element, err = escapedText(element, true); err != nil {
			return nil, err
		}
		out = append(out, element)
		if rest == "" {
			break
		}
		if rest[0] != ',' || len(rest) == 1 {
			return nil, fmt.Errorf("%w: %.40q", errEscape, rest)
		}
		rest = rest[1:]
	}
	return out, nil
}
