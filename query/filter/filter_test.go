package filter

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// testTopic has a promoted field of every type, and one named like a keyword.
func testTopic() *schemas.Topic {
	t := schemas.NewTopic("app",
		schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality},
		schemas.Field{Name: "region", Type: schemas.TypeString},
		schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64},
		schemas.Field{Name: "status", Type: schemas.TypeInt64},
		schemas.Field{Name: "cached", Type: schemas.TypeBool},
		schemas.Field{Name: "seen_at", Type: schemas.TypeTimestamp},
		schemas.Field{Name: "contains", Type: schemas.TypeString},
	)
	return &t
}

var testNow = time.Date(2026, 11, 5, 10, 0, 0, 0, time.UTC)

type params = map[string]string

func TestSQL(t *testing.T) {
	const at = "DateTime64(9,'UTC')"
	for _, c := range []struct {
		src, where string
		params     params
	}{
		{"", "1", params{}},
		{" \n\t", "1", params{}},
		{`level = 'error'`, "`level` = {p1:String}", params{"p1": "error"}},
		{`level != "a b"`, "`level` != {p1:String}", params{"p1": "a b"}},
		{`level == 'error'`, "`level` = {p1:String}", params{"p1": "error"}},
		{`level = 30`, "`level` = {p1:String}", params{"p1": "30"}},
		{`endpoint >= '/a' and region < "b"`, "(`endpoint` >= {p1:String} AND `region` < {p2:String})", params{"p1": "/a", "p2": "b"}},
		{`user_id IN ('u-7','u-8')`, "`user_id` IN {p1:Array(String)}", params{"p1": `['u-7','u-8']`}},
		{`user_id nOt iN ('u-7')`, "`user_id` NOT IN {p1:Array(String)}", params{"p1": `['u-7']`}},
		{`user_id in ('O\'Neil', "a\\b", 'tab\t')`, "`user_id` IN {p1:Array(String)}", params{"p1": `['O\'Neil','a\\b','tab\t']`}},
		{`message contains 'x'`, "position(`message`, {p1:String}) > 0", params{"p1": "x"}},
		{`message MATCHES '\d+ ms$'`, "match(`message`, {p1:String})", params{"p1": `\\d+ ms$`}},
		{`exists region`, "notEmpty(`region`)", params{}},
		{`exists attributes.x`, "mapContains(`attributes`, {p1:String})", params{"p1": "x"}},
		{`attributes.actor.login = 'a'`, "`attributes`[{p1:String}] = {p2:String}", params{"p1": "actor.login", "p2": "a"}},
		{`attributes['any \'key'] != 'a'`, "`attributes`[{p1:String}] != {p2:String}", params{"p1": "any 'key", "p2": "a"}},
		{`attributes.n IN (1, 'b', true)`, "`attributes`[{p1:String}] IN {p2:Array(String)}", params{"p1": "n", "p2": `['1','b','true']`}},
		{`attributes.n = 1.50`, "`attributes`[{p1:String}] = {p2:String}", params{"p1": "n", "p2": "1.50"}},
		{`attributes.n > 1.5`, "if(match(`attributes`[{p1:String}], '^[+-]?[0-9]{1,76}$'), toInt256OrZero(`attributes`[{p1:String}]) > {p2:Int256}, ifNull(toFloat64OrNull(`attributes`[{p1:String}]) > {p3:Float64}, false))", params{"p1": "n", "p2": "1", "p3": "1.5"}},
		{`attributes.k#2 = 'a'`, "`attributes`[{p1:String}] = {p2:String}", params{"p1": "k#2", "p2": "a"}},
		{`attributes.n <= 'b'`, "`attributes`[{p1:String}] <= {p2:String}", params{"p1": "n", "p2": "b"}},
		{`attributes.a-b.c:d matches '^x'`, "match(`attributes`[{p1:String}], {p2:String})", params{"p1": "a-b.c:d", "p2": "^x"}},
		{`ts >= '2026-11-05T10:00:00.5+01:00'`, "`ts` >= {p1:" + at + "}", params{"p1": "2026-11-05 09:00:00.500000000"}},
		{`ts < '2026-11-05'`, "`ts` < {p1:" + at + "}", params{"p1": "2026-11-05 00:00:00.000000000"}},
		{`ts > -1h30m`, "`ts` > {p1:" + at + "}", params{"p1": "2026-11-05 08:30:00.000000000"}},
		{`seen_at IN ('2026-11-05T10:00:00Z', -7d)`, "`seen_at` IN {p1:Array(" + at + ")}", params{"p1": `['2026-11-05 10:00:00.000000000','2026-10-29 10:00:00.000000000']`}},
		{`id = '0193A1B2-0000-7000-8000-000000000001'`, "`id` = {p1:UUID}", params{"p1": "0193a1b2-0000-7000-8000-000000000001"}},
		{`month = '2026-11' AND shard = '00c0ffee00c0ffee' AND pos > 17`, "(`month` = {p1:UInt32} AND `shard` = {p2:UInt64} AND `pos` > {p3:UInt64})",
			params{"p1": "202611", "p2": "54324593208393710", "p3": "17"}},
		{`duration_ms > -2.5e3`, "`duration_ms` > {p1:Float64}", params{"p1": "-2500"}},
		{`status NOT IN (200, +404)`, "`status` NOT IN {p1:Array(Int64)}", params{"p1": "[200,404]"}},
		{`cached = TRUE`, "`cached` = {p1:Bool}", params{"p1": "true"}},
		{"`contains` contains 'x'", "position(`contains`, {p1:String}) > 0", params{"p1": "x"}},
		{`level='a' or level='b' and not level='c'`, "(`level` = {p1:String} OR (`level` = {p2:String} AND NOT (`level` = {p3:String})))",
			params{"p1": "a", "p2": "b", "p3": "c"}},
		{`(level='a' or level='b') and not (not exists region)`, "((`level` = {p1:String} OR `level` = {p2:String}) AND NOT (NOT (notEmpty(`region`))))",
			params{"p1": "a", "p2": "b"}},
		{`not not not level = ''`, "NOT (`level` = {p1:String})", params{"p1": ""}},
		{`message = '\n\t\r\0\\\'\"\d'`, "`message` = {p1:String}", params{"p1": `\n\t\r\0\\'"\\d`}},
		{"message = 'a\nb'", "`message` = {p1:String}", params{"p1": `a\nb`}},
	} {
		e, err := ParseAt(c.src, testTopic(), testNow)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		where, got := e.SQL()
		if where != c.where {
			t.Errorf("%s:\n got %s\nwant %s", c.src, where, c.where)
		}
		if diff := cmp.Diff(c.params, got); diff != "" {
			t.Errorf("%s: params (-want +got):\n%s", c.src, diff)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		src    string
		kind   error
		column int
		msg    string
	}{
		{`usr_id = 'u'`, ErrUnknownField, 1, "usr_id is neither a column nor a promoted field; did you mean user_id? an attribute is written attributes.usr_id"},
		{`level = 'x' AND msg = 'u'`, ErrUnknownField, 17, "did you mean message?"},
		{`actor.login = 'u'`, ErrUnknownField, 1, "an attribute is written attributes.actor.login"},
		{`Level = 'u'`, ErrUnknownField, 1, "did you mean level?"},
		{`attributes = 'u'`, ErrUnknownField, 1, "attributes.name"},
		{`attributes[''] = 'u'`, ErrUnknownField, 1, "1 to 256 bytes"},
		{`level['x'] = 'u'`, ErrUnknownField, 1, "only attributes"},
		{`level = error`, ErrSyntax, 9, `unexpected word "error"; text is written in quotes: 'error'`},
		{`level IS NULL`, ErrSyntax, 7, `IS is not a word of this language; whether an event has an attribute is written: exists attributes.name`},
		{`level like 'err%'`, ErrSyntax, 7, `LIKE is not a word of this language`},
		{`NOT level between 1 and 2`, ErrSyntax, 11, `a range is written: field >= 1 AND field <= 2`},
		{`level exists`, ErrSyntax, 7, `unexpected "exists"; exists stands before a field, and takes no value: exists region, NOT exists region`},
		{`status = 5 AND level Not Exists`, ErrSyntax, 26, `unexpected "Exists"; exists stands before a field`},
		{`level = EXISTS`, ErrSyntax, 9, `exists stands before a field`},
		{`level NOT contains 'x'`, ErrSyntax, 11, `contains stands between a field and its value: message contains 'part', NOT message contains 'part'`},
		{`matches 'x'`, ErrSyntax, 1, `matches stands between a field and its value`},
		{`level = 'a' in ('x')`, ErrSyntax, 13, `NOT message IN ('a', 'b')`},
		{`level = not 'x'`, ErrSyntax, 9, `NOT stands before a comparison, or in NOT IN`},
		{`level and status = 1`, ErrSyntax, 7, `AND stands between two comparisons`},
		{`or level = 'a'`, ErrSyntax, 1, `OR stands between two comparisons`},
		{`level true`, ErrSyntax, 7, `true is a value: cached = true`},
		{`level false`, ErrSyntax, 7, `false is a value: cached = false`},
		{`level === 'error'`, ErrSyntax, 9, `unexpected "="`},
		{`level = 'error`, ErrSyntax, 9, "never closed"},
		{`level =`, ErrSyntax, 8, "ends too early"},
		{`(level = 'a'`, ErrSyntax, 13, "ends too early"},
		{`level = 'a')`, ErrSyntax, 12, `unexpected ")"`},
		{`level = 'a' ; DROP`, ErrSyntax, 13, `";" is not part`},
		{`é = 'a'`, ErrSyntax, 1, "not part"},
		{`message = 'é' x`, ErrSyntax, 15, `unexpected word "x"`},
		{`user_id IN ()`, ErrSyntax, 13, `unexpected ")"`},
		{`'a' = level`, ErrSyntax, 1, "begins with a field"},
		{`duration_ms = '5'`, ErrType, 15, "a number"},
		{`duration_ms = 1e999`, ErrType, 15, "a number"},
		{`status = 1.5`, ErrType, 10, "a whole number"},
		{`pos = -1`, ErrType, 7, "from 0 on"},
		{`cached = 1`, ErrType, 10, "true or false"},
		{`cached < true`, ErrType, 8, "no order"},
		{`id > '0193a1b2-0000-7000-8000-000000000001'`, ErrType, 4, "no order"},
		{`attributes.n > 1e999`, ErrType, 16, "out of range"},
		{`duration_ms > 9007199254740993`, ErrType, 15, "does not have the whole number 9007199254740993; the nearest that it has is 9.007199254740992e+15"},
		{`id = 'x'`, ErrType, 6, "UUID"},
		{`ts > 'yesterday'`, ErrType, 6, "a time"},
		{`ts > 5`, ErrType, 6, "a time"},
		{`ts > '9999-01-01T00:00:00Z'`, ErrType, 6, "a time"},
		{`ts > -99999999999d`, ErrType, 6, "relative"},
		{`level > -5m`, ErrType, 9, "text"},
		{`month = '2026-13'`, ErrType, 9, "'2026-11'"},
		{`shard = 'xyz'`, ErrType, 9, "16 hex"},
		{`status contains 'x'`, ErrType, 8, "for text"},
		{`message matches '('`, ErrType, 17, "missing closing )"},
		{`exists ts`, ErrType, 8, "every event has ts"},
		{`exists status`, ErrType, 8, "zero"},
		{strings.Repeat("(", 65) + "level='a'" + strings.Repeat(")", 65), ErrTooLarge, 65, "deeper than 64"},
		{"level = '" + strings.Repeat("x", MaxFilterBytes) + "'", ErrTooLarge, 1, "16394 bytes, the limit is 16384"},
		{"level IN (1" + strings.Repeat(",1", MaxList) + ")", ErrTooLarge, 2011, "1001 values, the limit is 1000"},
		{strings.Repeat("(", 16000), ErrTooLarge, 65, "deeper"},
	} {
		_, err := ParseAt(c.src, testTopic(), testNow)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want kind %v", clip(c.src), err, c.kind)
			continue
		}
		if e.Column != c.column || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s: got column %d, %q; want column %d, %q", clip(c.src), e.Column, e.Msg, c.column, c.msg)
		}
	}
	if _, err := Parse("ts > -15m", nil); !errors.Is(err, ErrType) {
		t.Errorf("a relative time without a clock: %v", err)
	}
}

func TestRender(t *testing.T) {
	_, err := Parse("level = 'é'\n\tAND usr_id = 'u'", nil)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	want := "unknown field at column 18: usr_id is neither a column nor a promoted field; did you mean user_id? an attribute is written attributes.usr_id\n" +
		"  level = 'é'  AND usr_id = 'u'\n" +
		"                   ^"
	if got := e.Render(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := &Error{Src: strings.Repeat("a", 200), Column: 100, Msg: "m", Kind: ErrSyntax}
	for _, line := range strings.Split(long.Render(), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

// What a user writes is never part of the condition.
func TestUserTextStaysInParams(t *testing.T) {
	evil := `'); DROP TABLE x --`
	for _, src := range []string{
		"message = " + Quote(evil),
		"message contains " + Quote(evil),
		"user_id IN (" + Quote(evil) + ")",
		"attributes[" + Quote(evil) + "] = " + Quote(evil),
		"exists attributes[" + Quote(evil) + "]",
		"message = \"{p9:Identifier}` OR 1\"",
	} {
		e, err := Parse(src, nil)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if where, _ := e.SQL(); strings.Contains(where, "DROP") || strings.Contains(where, "OR 1") {
			t.Errorf("%s became %s", src, where)
		}
	}
}

func TestIndexes(t *testing.T) {
	for src, want := range map[string][]string{
		"":                                    nil,
		"level = 'a'":                         nil,
		"user_id = 'u'":                       {"user_id"},
		"user_id IN ('u')":                    {"user_id"},
		"user_id != 'u'":                      nil,
		"user_id > 'u'":                       nil,
		"user_id NOT IN ('u')":                nil,
		"user_id contains 'u'":                nil,
		"ts > '2026-11-05' AND user_id = 'u'": {"ts", "user_id"},
		"ts > '2026-11-05' OR user_id = 'u'":  nil,
		"user_id = 'a' OR user_id = 'b' AND level = 'x'": {"user_id"},
		"NOT user_id = 'a'": nil,
		"month = '2026-11' AND shard = '00c0ffee00c0ffee'": {"month", "shard"},
		"attributes.user_id = 'u'":                         nil,
	} {
		e, err := Parse(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, e.Indexes(sql.Indexes(testTopic()))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", src, diff)
		}
	}
}

func TestNilMatchesAll(t *testing.T) {
	var e *Expr
	where, p := e.SQL()
	if where != "1" || len(p) != 0 || !e.All() || e.String() != "" || e.Indexes(sql.Indexes(testTopic())) != nil {
		t.Errorf("got %q %v", where, p)
	}
}

func TestParams(t *testing.T) {
	for _, c := range []struct{ in, text, array string }{
		{"", "", "['']"},
		{"a", "a", "['a']"},
		{`\`, `\\`, `['\\']`},
		{"\t\n\r\b\f\x00", `\t\n\r\b\f\0`, `['\t\n\r\b\f\0']`},
		{"'", "'", `['\'']`},
		{`\N`, `\\N`, `['\\N']`},
		{"\xed\xb9\xa4", "\xed\xb9\xa4", "['\xed\xb9\xa4']"},
	} {
		if got := ParamString(c.in); got != c.text {
			t.Errorf("ParamString(%q) = %q, want %q", c.in, got, c.text)
		}
		if got := ParamArray([]string{c.in}, true); got != c.array {
			t.Errorf("ParamArray(%q) = %q, want %q", c.in, got, c.array)
		}
	}
	if got := ParamArray([]string{"a", "b"}, true); got != "['a','b']" {
		t.Error(got)
	}
	if got := ParamArray([]string{"1", "2"}, false); got != "[1,2]" {
		t.Error(got)
	}
}

// Every keyword says where it stands, and the example that it gives is a filter.
func TestWhereKeywordsStand(t *testing.T) {
	words := 0
	for _, rule := range tokens.Rules()["Root"] {
		if rule.Name != "Keyword" {
			continue
		}
		for _, word := range regexp.MustCompile(`[A-Z]+`).FindAllString(strings.TrimPrefix(strings.TrimSuffix(rule.Pattern, `\b`), "(?i)"), -1) {
			words++
			_, examples, ok := strings.Cut(stands[word], ": ")
			if !ok {
				t.Errorf("%s: %q", word, stands[word])
			}
			for _, example := range strings.Split(strings.ReplaceAll(examples, "('a', 'b')", "('a','b')"), ", ") {
				if _, err := ParseAt(example, testTopic(), testNow); err != nil {
					t.Errorf("the example of %s: %v", word, err)
				}
			}
		}
	}
	if words != len(stands) {
		t.Errorf("%d keywords, and %d places", words, len(stands))
	}
}
