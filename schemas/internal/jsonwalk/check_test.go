package jsonwalk

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is JSON, and what is not, by the smallest difference.
var samples = []string{
	``, ` `, `{}`, `[]`, `[ ]`, `{ }`, ` {"a" : [ 1 , {"b":null} ] , "c":"d"} `, `{"a":1,}`, `[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1]`, `[1}`, `[`, `{`, `{"`, `{"a`, `{"a":1`, `]`, `}`, `1 2`, `{} x`, "{}\x00",
	`true`, `false`, `null`, `tru`, `truex`, `nul`, `fals`, `True`, `nulll`, `[true,false,null]`,
	`0`, `-0`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e-05`, `1e`, `1e+`, `1.e5`, `1.5e5.5`, `0x10`, `1-`, `NaN`, `12345678901234567890`, `0.0`, `00`, `0e0`, `1_000`,
	`""`, `"a`, `"abcdefg"`, `"abcdefgh"`, `"abcdefghi"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD800\udfFF"`, `"\u00g0"`, `"\u12"`, `"\u123`, `"\x41"`, `"\`, `"\'"`, `"\U0041"`,
	"\"\n\"", "\"\x1f\"", "\"\x7f\"", "\"\xff\xfe\"", "\"\xc3\"", "\"1234567\x1f\"", "\"12345678\x00\"", "\"é\u2028日本\"", "\"\x80\x80\x80\x80\x80\x80\x80\x80\"", "\"!!!!!!!!\"", "\"#\"", "\"[\"", "\"]\"", "\"\x20\"",
	"\ufeff{}", "\v1", "\u00a01", "{\"a\"\n:\t1\r}", `{"":""}`, `{"a":{"a":{"a":[[[{}]]]}}}`, `"a""b"`, `{"a":"b""c":1}`, `[1 2]`, `{1:2}`, `{null:1}`, `{"a":1,"a"}`,
}

func TestValid(t *testing.T) {
	t.Parallel()
	more := append([]string(nil), samples...)
	for _, n := range []int{63, 64, 65, MaxDepth - 1, MaxDepth, MaxDepth + 1} {
		more = append(more, strings.Repeat("[", n)+strings.Repeat("]", n), strings.Repeat("[", n)+"1"+strings.Repeat("]", n),
			strings.Repeat(`{"a":`, n)+"1"+strings.Repeat("}", n), strings.Repeat(`[{"a":`, n/2)+"{}"+strings.Repeat("}]", n/2))
	}
	for i := range 256 { // each byte, at each place of a word
		for at := range 10 {
			more = append(more, `"`+strings.Repeat("a", at)+string([]byte{byte(i)})+strings.Repeat("b", 9)+`"`)
		}
		more = append(more, string([]byte{byte(i)}), "1"+string([]byte{byte(i)}), `"\`+string([]byte{byte(i)})+`"`, `"\u000`+string([]byte{byte(i)})+`"`)
	}
	for _, s := range more {
		if got, want := Valid(s), json.Valid([]byte(s)); got != want {
			t.Errorf("%.60q: %t, encoding/json says %t", s, got, want)
		}
	}
}

// What Valid takes is what encoding/json takes, and what is passed over inside of it too.
func FuzzValid(f *testing.F) {
	for _, s := range samples {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := json.Valid([]byte(s))
		if got := Valid(s); got != want {
			t.Fatalf("%q: %t, encoding/json says %t", s, got, want)
		}
		if !want {
			return
		}
		if compact := Raw(strings.TrimSpace(s)).Compact(nil); !json.Valid(compact) {
			t.Fatalf("%q: without space it is %q, which is not JSON", s, compact)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	line := `{"ts":"2026-11-05T10:00:00Z","level":"info","service":"api","message":"request served from cache after retry of upstream with status 7 and token renewed for session","user_id":"u-7","http":{"status":200,"ms":1.5,"path":"/orders"}}`
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if !Valid(line) {
			b.Fatal("it is JSON")
		}
	}
}
