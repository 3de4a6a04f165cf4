package main

import (
	"strings"
	"testing"
)

// Doctor names the rules that matched nothing, with the names that
// end alike, and the fields whose values did not fit; send says what a raw line keeps.
func TestRulesAndFieldsThatMeetNothingAreSaid(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	b.ok("", "topics", "apply", "auth", "--pii", "email:drop", "--pii", "phone:drop", "--field", "took:int64", "--field", "share:float64")
	b.ok(`{"email":"a@b","owner":{"phone":"1"},"took":9223372036854775808,"share":"NaN"}`+"\n"+`{"Email":"a@b","took":7,"share":0.5}`+"\n", "send", "auth", "--format", "ndjson")
	extract := []string{"send", "auth", "--extract", `from (?P<email>\S+)`}
	r := b.run("login from a@b\n", extract...)
	if r.code != exitOK {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	contains(t, r.err, "keeps in clear what the rules of topic auth take out of email", "--drop-raw")
	if r := b.run("login from a@b\n", append(extract, "--drop-raw")...); r.code != exitOK || strings.Contains(r.err, "in clear") {
		t.Errorf("with --drop-raw: exit %d: %s", r.code, r.err)
	}
	b.inTheEnd(4)
	out := b.diagnosed(anyCode, "the rule phone:drop has matched none of 4 events", "owner.phone",
		"1 of 4 events keep in attributes.took a value that is not of the type int64", "1 of 4 events keep in attributes.share a value that is not of the type float64")
	if strings.Contains(out, "email:drop has matched none") {
		t.Errorf("a rule that matched is named:\n%s", out)
	}
	const sql = "SELECT took, share, attributes['took'] AS a, attributes['share'] AS b FROM auth WHERE mapContains(attributes, 'owner.phone')"
	if got, want := b.ok("", "sql", sql), `{"took":0,"share":0,"a":"9223372036854775808","b":"NaN"}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
