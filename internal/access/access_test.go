package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every role and action, on its topic, on another, and on all of them: exactly what the table says.
func TestMay(t *testing.T) {
	t.Parallel()
	actions := []Action{Send, Change, Read, SQL, Operate, Admin, Metrics}
	want := map[Role][3]string{ // on app, on other, on all
		RoleMetrics: {"metrics", "metrics", "metrics"},
		RoleWrite:   {"send change", "", ""},
		RoleRead:    {"read", "", ""},
		RoleSQL:     {"sql", "", ""},
		RoleOperate: {"read operate", "", ""},
		RoleAdmin:   {"send change read sql operate admin metrics", "send change read sql operate admin metrics", "send change read sql operate admin metrics"},
	}
	for _, r := range Rights {
		p := Principal{Name: "t", Grants: []Grant{{r.Role, []string{"app"}}}}
		for i, topic := range []string{"app", "other", ""} {
			t.Run(fmt.Sprintf("%s on %q", r.Role, topic), func(t *testing.T) {
				t.Parallel()
				var may []string
				for _, a := range actions {
					err := p.May(a, topic)
					var denied *Denied
					if err != nil && (!errors.As(err, &denied) || !strings.Contains(err.Error(), string(denied.Roles[0]))) {
						t.Errorf("%s: %v", a, err)
					}
					if err == nil {
						may = append(may, string(a))
					}
				}
				if got := strings.Join(may, " "); got != want[r.Role][i] {
					t.Errorf("it may %q, expected %q", got, want[r.Role][i])
				}
				if p.May(Open, topic) != nil {
					t.Error("health is refused")
				}
			})
		}
	}
}

func TestAnonymous(t *testing.T) {
	t.Parallel()
	for a, loopback := range map[Action]bool{Send: true, Read: true, SQL: true, Metrics: true, Change: false, Operate: false, Admin: false, Open: true} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			if may := Anonymous(true).May(a, "app") == nil; may != loopback {
				t.Errorf("on loopback: %v", may)
			}
			if may := Anonymous(false).May(a, "app") == nil; may != (a == Open) {
				t.Errorf("beyond loopback: %v", may)
			}
		})
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	secret, id := NewSecret()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	tokens := NewTokens([]Token{{
		Name: "api", ID: id, Digest: DigestOf(secret), Grants: []Grant{{RoleWrite, []string{"app"}}}, Expires: now.Add(time.Hour),
		From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}})
	other, _ := NewSecret()
	inside := netip.MustParseAddr("10.1.2.3")
	for name, c := range map[string]struct {
		Asked
		ok  bool
		why string
	}{
		"right":               {Asked{Secret: secret, Peer: inside, At: now}, true, ""},
		"mapped address":      {Asked{Secret: secret, Peer: netip.MustParseAddr("::ffff:10.1.2.3"), At: now}, true, ""},
		"none":                {Asked{Secret: "", Peer: inside, At: now}, false, "form"},
		"no token's":          {Asked{Secret: other, Peer: inside, At: now}, false, "an id that no token has"},
		"wrong, id right":     {Asked{Secret: secret[:len(secret)-1] + map[bool]string{true: "B", false: "A"}[strings.HasSuffix(secret, "A")], Peer: inside, At: now}, false, "a wrong secret"},
		"an id of no letters": {Asked{Secret: "alm_\x1b[5mA_" + secret[11:], Peer: inside, At: now}, false, "form"},
		"past its end":        {Asked{Secret: secret, Peer: inside, At: now.Add(time.Hour)}, false, "ended"},
		"from elsewhere":      {Asked{Secret: secret, Peer: netip.MustParseAddr("192.0.2.1"), At: now}, false, "another network"},
		"the digest as given": {Asked{Secret: DigestOf(secret).String(), Peer: inside, At: now}, false, "form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, why, err := tokens.Authenticate(&c.Asked)
			if (err == nil) != c.ok || !strings.Contains(why, c.why) || c.ok && (p.Name != "api" || p.Token == nil) {
				t.Errorf("%+v, %q, %v", p, why, err)
			}
			if err != nil && err.Error() != ErrUnauthenticated.Error() {
				t.Errorf("the error tells more: %v", err)
			}
			if strings.Contains(why, secret) {
				t.Errorf("the reason has the secret: %s", why)
			}
		})
	}
}

// A token's row limit is its holder's, and what shows all rows is refused to it, whatever its roles.
func TestRowLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	read := []Grant{{RoleRead, []string{"app"}}}
	tokens := NewTokens([]Token{{Name: "a", Subject: "CN=a", Grants: read, Where: "level = 'info'"}, {Name: "b", Subject: "CN=b", Grants: read}})
	for subject, limit := range map[string]string{"CN=a": "level = 'info'", "CN=b": ""} {
		p, _, err := tokens.Certified(&Asked{Subject: subject, SubjectEnds: now.Add(time.Hour), At: now})
		if err != nil || p.Where != limit || p.May(Read, "app") != nil {
			t.Errorf("%s: %+v, %v", subject, p, err)
		}
		if err := p.MayAll(Read, "app"); (err == nil) != (limit == "") || err != nil && !strings.Contains(err.Error(), "some rows alone") {
			t.Errorf("%s, of all rows: %v", subject, err)
		}
	}
}

// A certificate stands for the token that has its subject, while both are valid.
func TestCertified(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	secret, id := NewSecret()
	tokens := NewTokens([]Token{
		{Name: "api", Subject: "CN=api,O=Acme", Grants: []Grant{{RoleWrite, []string{"app"}}}, Expires: now.Add(2 * time.Hour), From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		{Name: "other", ID: id, Digest: DigestOf(secret)},
	})
	inside := netip.MustParseAddr("10.1.2.3")
	for name, c := range map[string]struct {
		Asked
		why string // empty: it is taken
	}{
		"its subject":           {Asked{Subject: "CN=api,O=Acme", SubjectEnds: now.Add(time.Hour), Peer: inside, At: now}, ""},
		"another's":             {Asked{Subject: "CN=api", SubjectEnds: now.Add(time.Hour), Peer: inside, At: now}, "no token has: CN=api"},
		"none":                  {Asked{SubjectEnds: now.Add(time.Hour), Peer: inside, At: now}, "no token has"},
		"a certificate's end":   {Asked{Subject: "CN=api,O=Acme", SubjectEnds: now, Peer: inside, At: now}, "ended"},
		"the token's end":       {Asked{Subject: "CN=api,O=Acme", SubjectEnds: now.Add(3 * time.Hour), Peer: inside, At: now.Add(2 * time.Hour)}, "ended"},
		"from another network":  {Asked{Subject: "CN=api,O=Acme", SubjectEnds: now.Add(time.Hour), Peer: netip.MustParseAddr("192.0.2.1"), At: now}, "another network"},
		"the name of a token":   {Asked{Subject: "other", SubjectEnds: now.Add(time.Hour), Peer: inside, At: now}, "no token has"},
		"the id of a token":     {Asked{Subject: id, SubjectEnds: now.Add(time.Hour), Peer: inside, At: now}, "no token has"},
		"a subject as a secret": {Asked{Secret: "CN=api,O=Acme", Peer: inside, At: now}, "no token has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, why, err := tokens.Certified(&c.Asked)
			if (err == nil) != (c.why == "") || !strings.Contains(why, c.why) || err == nil && p.Name != "api" {
				t.Errorf("%+v, %q, %v", p, why, err)
			}
		})
	}
}

func TestSecretOf(t *testing.T) {
	t.Parallel()
	secret, id := NewSecret()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, h := range map[string][2]string{
		"bearer":           {"Authorization", "Bearer " + secret},
		"lower case":       {"Authorization", "bearer  " + secret},
		"basic":            {"Authorization", "Basic " + b64("any:"+secret)},
		"elastic":          {"Authorization", "ApiKey " + b64(id+":"+secret)},
		"elastic, as is":   {"Authorization", "ApiKey " + secret},
		"clickhouse":       {"X-ClickHouse-Key", secret},
		"influx's, vmauth": {"Authorization", "Token " + secret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := SecretOf(http.Header{http.CanonicalHeaderKey(h[0]): {h[1]}}); got != secret {
				t.Errorf("%q", got)
			}
		})
	}
	if got := SecretOf(http.Header{}); got != "" {
		t.Errorf("of no header: %q", got)
	}
}

// A request has one secret, in one header.
func TestSeveral(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h    http.Header
		want string
	}{
		"none":           {http.Header{}, ""},
		"one":            {http.Header{"Authorization": {"Bearer a"}}, ""},
		"the other":      {http.Header{"X-Clickhouse-Key": {"a"}}, ""},
		"twice":          {http.Header{"Authorization": {"Bearer a", "Bearer a"}}, "Authorization"},
		"the other's":    {http.Header{"X-Clickhouse-Key": {"a", "b"}}, "X-ClickHouse-Key"},
		"one and other":  {http.Header{"Authorization": {"Bearer a"}, "X-Clickhouse-Key": {"b"}}, "Authorization and X-ClickHouse-Key"},
		"same, in both":  {http.Header{"Authorization": {"Bearer a"}, "X-Clickhouse-Key": {"a"}}, "Authorization and X-ClickHouse-Key"},
		"empty and full": {http.Header{"Authorization": {""}, "X-Clickhouse-Key": {"a"}}, "Authorization and X-ClickHouse-Key"},
	} {
		if got := Several(c.h); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	secret, id := NewSecret()
	hash := DigestOf(secret).String()
	for name, c := range map[string]struct{ text, says string }{
		"empty":               {"", ""},
		"a rate of none":      {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", write: [app], rate: {events: .nan}}]`, "a rate"},
		"a rate of any":       {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", write: [app], rate: {bytes: .inf}}]`, "a rate"},
		"whole":               {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", write: [app, auth], expires: 2027-11-01, from: [10.0.0.0/8], rate: {events: 5000, bytes: 10485760}}]`, ""},
		"a name of Almanac's": {`tokens: [{name: almanac, id: ` + id + `, hash: "` + hash + `", write: [app]}]`, "the name is that of"},
		"the local one's":     {`tokens: [{name: local, id: ` + id + `, hash: "` + hash + `", write: [app]}]`, "the name is that of"},
		"no role":             {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `"}]`, "it has no role"},
		"no topic's name":     {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", read: ["a b"]}]`, `"a b" is not a topic's name`},
		"an unknown key":      {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", reed: [app]}]`, "reed"},
		"a secret as a hash":  {`tokens: [{name: api, id: ` + id + `, hash: ` + secret + `, sql: true}]`, "as `almanac token add` prints them"},
		"an end":              {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", sql: true, expires: soon}]`, "expected a date"},
		"a name":              {`tokens: [{name: "a b", id: ` + id + `, hash: "` + hash + `", sql: true}]`, "a name is"},
		"two of one name":     {`tokens: [{name: a, id: ` + id + `, hash: "` + hash + `", sql: true}, {name: a, id: zzzzzz, hash: "` + hash + `", sql: true}]`, ""},
		"two of one id":       {`tokens: [{name: a, id: ` + id + `, hash: "` + hash + `", sql: true}, {name: b, id: ` + id + `, hash: "` + hash + `", sql: true}]`, "the id or the subject of another"},
		"not YAML":            {"tokens: [", "not a token"},
		"a subject":           {`tokens: [{name: api, subject: "CN=api,O=Acme", write: [app]}]`, ""},
		"subject and hash":    {`tokens: [{name: api, id: ` + id + `, hash: "` + hash + `", subject: CN=api, sql: true}]`, "leave those out"},
		"no subject":          {`tokens: [{name: api, subject: api, sql: true}]`, "such as CN=api"},
		"two of one subject":  {`tokens: [{name: a, subject: CN=api, sql: true}, {name: b, subject: CN=api, sql: true}]`, "of another"},
		"a row limit":         {`tokens: [{name: a, subject: CN=a, read: [app], where: "attributes.tenant = 'a'"}]`, ""},
		"sql of topics":       {`tokens: [{name: a, subject: CN=a, sql: [app, auth]}]`, ""},
		"sql of none":         {`tokens: [{name: a, subject: CN=a, read: [app], sql: []}]`, "sql is of no topic"},
		"sql of a star":       {`tokens: [{name: a, subject: CN=a, sql: ["*"]}]`, "is written true"},
		"sql of no name":      {`tokens: [{name: a, subject: CN=a, sql: ["a b"]}]`, "is not a topic's name"},
		"sql of rows":         {`tokens: [{name: a, subject: CN=a, sql: [app], where: "level = 'info'"}]`, "role sql cannot be narrowed"},
		"an empty limit":      {`tokens: [{name: a, subject: CN=a, read: [app], where: ""}]`, "where is empty"},
		"a blank limit":       {`tokens: [{name: a, subject: CN=a, read: [app], where: " "}]`, "where is empty"},
		"a long limit":        {`tokens: [{name: a, subject: CN=a, read: [app], where: "` + strings.Repeat("x", maxWhere+1) + `"}]`, "the limit is 2048"},
		"a limit of writes":   {`tokens: [{name: a, subject: CN=a, read: [app], write: [app], where: "level = 'info'"}]`, "role write cannot be narrowed"},
		"a limit of admins":   {`tokens: [{name: a, subject: CN=a, admin: true, where: "level = 'info'"}]`, "role admin cannot be narrowed"},
		"two subjects":        {`tokens: [{name: a, subject: CN=api, sql: true}, {name: b, subject: CN=b, sql: true}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Parse([]byte(c.text))
			if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || !errors.Is(err, ErrToken) || strings.Contains(err.Error(), secret)) {
				t.Fatalf("%v", err)
			}
			if err != nil {
				return
			}
			text, err := Text(all)
			again, err2 := Parse(text)
			if err := errors.Join(err, err2); err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", all) {
				t.Errorf("%v: %+v, written and read: %+v\n%s", err, all, again, text)
			}
		})
	}
}

// A peer tries ten times a minute without a wait, and no number of peers grows what is kept.
func TestFailures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f Failures
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		times := map[netip.Addr][]time.Time{} // of answers without a wait
		for range rapid.IntRange(1, 200).Draw(t, "tries") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "pause")) * time.Millisecond)
			peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 3).Draw(t, "peer"))})
			if f.Add(peer, now) == 0 {
				times[peer] = append(times[peer], now)
			}
			recent := slices.DeleteFunc(slices.Clone(times[peer]), func(at time.Time) bool { return now.Sub(at) >= failuresSpan })
			if len(recent) > 2*failuresFree { // at most ten in each of two spans that touch
				t.Fatalf("%d tries without a wait in a minute", len(recent))
			}
		}
	})
	var f Failures
	now := time.Now()
	for i := range 3 * maxPeers {
		f.Add(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now)
	}
	if len(f.peers) > maxPeers {
		t.Errorf("%d peers are remembered", len(f.peers))
	}
	if Network(netip.MustParseAddr("2001:db8::1")) != Network(netip.MustParseAddr("2001:db8::ffff:1%eth0")) {
		t.Error("two addresses of one /64 are two peers")
	}
}

// What clients put where no secret belongs is kept without it, as it is and as addresses write it.
func TestMasked(t *testing.T) {
	t.Parallel()
	secret, id := NewSecret()
	for _, text := range []string{secret, strings.ReplaceAll(secret, "_", "%5F"), "a=" + strings.ToLower(secret) + "&b=1", "SELECT '" + secret + "'"} {
		got := Masked(text)
		if !strings.Contains(got, "alm_"+id+"_xxxxx") || strings.Contains(strings.ToUpper(got), secret[11:]) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if plain := "the alms_of_all"; Masked(plain) != plain {
		t.Errorf("%s", Masked(plain))
	}
}

// Who may do something, and whose request came by a proxy.
func TestAny(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who *Principal
		any bool
	}{{Anonymous(false), false}, {Anonymous(true), true}, {&Principal{Grants: []Grant{{Role: RoleRead}}}, true}, {&Principal{}, false}} {
		if c.who.Any() != c.any {
			t.Errorf("%+v: %v", c.who, c.who.Any())
		}
	}
	for name, want := range map[string]bool{
		"X-Forwarded-For": true, "Forwarded": true, "Via": true, "X-Real-IP": true, "X-Forwarded-User": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
		"X_Forwarded_For": true, "CF-Connecting-IP": true, "True-Client-IP": true, "X-Client-IP": true, "X-Forwarded": false, "Accept": false, "X-User": false,
	} {
		h := http.Header{}
		h.Set(name, "")
		if Forwarded(h) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// A secret in a place of the file where none belongs is in no error: errors are logged.
func TestErrorsHaveNoSecret(t *testing.T) {
	t.Parallel()
	secret, _ := NewSecret()
	for name, text := range map[string]string{
		"as the name":    "tokens: [{name: %s}]",
		"as the id":      "tokens: [{name: a, id: %s}]",
		"as the subject": "tokens: [{name: a, subject: %s}]",
		"as a topic":     `tokens: [{name: a, subject: "CN=a", read: [%s]}]`,
		"as the end":     `tokens: [{name: a, subject: "CN=a", sql: true, expires: %s}]`,
		"as a key":       "tokens: [{%s: a}]",
		"as a network":   "tokens: [{name: a, from: [%s]}]",
		"alone":          "%s",
	} {
		_, err := Parse([]byte(fmt.Sprintf(text, secret)))
		if err == nil || !errors.Is(err, ErrToken) || strings.Contains(err.Error(), secret[11:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
