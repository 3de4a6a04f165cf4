package main

import (
	"fmt"
	"strings"
	"testing"
)

// Bad lines are refused one by one, each for what is wrong with it, and the good ones are
// stored; the names of CloudEvents and Stripe's meter events are taken too.
func TestSendMeter(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "usage", "--kind", "meter", "--field", "amount:decimal")
	line := func(rest string) string {
		return `{"ts":"2026-02-01T00:00:00Z","type":"bytes","provider":"p","space":"s1",` + rest + "}\n"
	}
	r := b.run(line(`"cause":"c-1","delta":100`)+line(`"cause":"c-2","delta":9007199254740992`)+line(`"cause":"c-3","delta":9007199254740993`)+
		line(`"cause":"c-4","delta":1.5`)+line(`"delta":100`)+line(`"cause":"c-6","delta":1,"amount":"1e-19"`)+
		`{"ts":"2026-02-01T00:00:00Z","specversion":"1.0","type":"bytes","source":"gw","id":"7","subject":"s1","data":{"value":7}}`+"\n"+
		`{"event_name":"tokens","timestamp":1769904000,"identifier":"id-8","payload":{"stripe_customer_id":"cus_8","value":"25"}}`+"\n",
		"send", "usage", "--format", "ndjson")
	for _, want := range []string{
		"line 3 refused: bad value: delta is 9007199254740993, it must be -9007199254740992 to 9007199254740992",
		`line 4 refused: bad value: delta is "1.5", it must be a whole number`,
		"line 5 refused: bad value: cause is missing",
		`line 6 refused: bad value: amount is "1e-19", it must be a number of at most 20 digits before the point and 18 after it`,
		"8 read, 4 accepted, 4 refused",
	} {
		contains(t, r.err, want)
	}
	const rows = "SELECT type, user_id, space, cause, delta FROM usage ORDER BY delta"
	want := `{"type":"bytes","user_id":"","space":"s1","cause":"gw 7","delta":7}
{"type":"tokens","user_id":"cus_8","space":"cus_8","cause":"id-8","delta":25}
{"type":"bytes","user_id":"","space":"s1","cause":"c-1","delta":100}
{"type":"bytes","user_id":"","space":"s1","cause":"c-2","delta":9007199254740992}
`
	if got := b.ok("", "sql", "--wait", "1m", "-o", "ndjson", rows); got != want {
		t.Errorf("stored is\n%s", got)
	}
	shown := b.ok("", "query", "usage", "-o", "table")
	for _, column := range []string{"ts", "type", "user_id", "provider", "space", "cause", "delta", "attributes"} {
		contains(t, shown, column)
	}
	for call, says := range map[string]string{
		"topics apply usage --kind log":                                  `kind is "meter" and cannot become "log"`,
		"topics apply other --kind metre":                                `"metre" is not a kind; the kinds are log, meter, metric, audit, document, timer`,
		"topics apply other --once-by request":                           `once_by names "request", which is not a column`,
		"topics apply usage --pii cause:drop":                            "must have the column cause",
		"replay usage --into app --from 2026-02-01":                      "app of kind log",
		"topics apply usage --anonymise-after 1 --anonymise space --yes": `clear the column "space"`,
	} {
		if r := b.run("", strings.Fields(call)...); r.code == exitOK || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s, want %s", call, r.code, r.err, says)
		}
	}
}

// A real bill, sent twice: amounts of up to fifteen digits after the point add up exactly,
// and each row counts once. FOCUS sample data of the FinOps Foundation, CC BY 4.0.
func TestBillOfDecimals(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i, l := range focus(t) {
		fmt.Fprintf(&lines, `{"ts":%q,"type":"bill","space":%q,"cause":"row-%d","delta":0,"amount":%q}`+"\n", l.Start.Format("2006-01-02T15:04:05"), l.Account, i, l.Billed)
	}
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "bills", "--kind", "meter", "--field", "amount:decimal")
	for range 2 {
		b.ok(lines.String(), "send", "bills", "--format", "ndjson")
	}
	got := b.ok("", "sql", "--wait", "1m", "-o", "ndjson",
		"SELECT toString(sum(a)) AS billed, uniqExact(space) AS accounts, count() AS causes, sum(n) AS rows FROM (SELECT space, any(amount) AS a, count() AS n FROM bills GROUP BY type, provider, space, cause)")
	if want := `{"billed":"20.52022672899","accounts":73,"causes":1000,"rows":2000}` + "\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
