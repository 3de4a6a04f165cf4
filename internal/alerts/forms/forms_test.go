package forms

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
)

// notice is an alert of a user with everything, which fires, or ends for a reason.
func notice(to decide.State) *decide.Notice {
	n := &decide.Notice{
		Key: "K", Topic: "app", Group: "logins", Rule: "Failed", By: "user_id", Value: "u<1>", From: decide.Pending, To: to, Count: 5,
		Since: time.Date(2026, 11, 27, 3, 19, 59, 0, time.UTC).UnixNano(), At: time.Date(2026, 11, 27, 3, 20, 59, 0, time.UTC).UnixNano(),
		Labels: map[string]string{"severity": "page", "user_id": "u<1>"}, Annotations: map[string]string{"summary": "u<1> failed & failed", "description": "ask them"},
	}
	if to == decide.Inactive {
		n.From, n.Reason, n.Count = decide.Firing, "the rule was removed or changed", 0
	}
	return n
}

// TestBodies holds each form, byte by byte.
func TestBodies(t *testing.T) {
	const labels, texts = `{"alertname":"Failed","severity":"page","user_id":"u<1>"}`, `{"description":"ask them","summary":"u<1> failed & failed"}`
	const told = `{"key":"K","status":"`
	const rest = `","group":"logins","alert":"Failed","topic":"app","labels":` + labels + `,"annotations":` + texts + `,"value":`
	const fields = `{"title":"severity","value":"page","short":true},{"title":"user_id","value":"u&lt;1&gt;","short":true}`
	dedup := DedupKey(notice(decide.Firing))
	for name, c := range map[string]struct {
		call decide.Call
		to   decide.State
		want string
	}{
		"json fires": {decide.Call{}, decide.Firing, told + "firing" + rest + `5,"starts_at":"2026-11-27T03:19:59Z","ends_at":null}`},
		"json ends":  {decide.Call{Form: JSON}, decide.Inactive, told + "resolved" + rest + `0,"starts_at":"2026-11-27T03:19:59Z","ends_at":"2026-11-27T03:20:59Z","reason":"the rule was removed or changed"}`},
		"slack fires": {decide.Call{Form: Slack}, decide.Firing, `{"text":"*[FIRING] Failed* u&lt;1&gt; failed &amp; failed","attachments":[{"color":"danger","fallback":"u&lt;1&gt; failed &amp; failed","text":"ask them",` +
			`"fields":[{"title":"topic","value":"app","short":true},{"title":"value","value":"5","short":true},` + fields + `],"ts":1795749659}]}`},
		"slack ends": {decide.Call{Form: Slack}, decide.Inactive, `{"text":"*[RESOLVED] Failed* u&lt;1&gt; failed &amp; failed","attachments":[{"color":"good","fallback":"u&lt;1&gt; failed &amp; failed","text":"ask them",` +
			`"fields":[{"title":"topic","value":"app","short":true},{"title":"value","value":"0","short":true},` + fields + `,{"title":"reason","value":"the rule was removed or changed","short":false}],"ts":1795749659}]}`},
		"pagerduty fires": {decide.Call{Form: PagerDuty, RoutingKey: "R"}, decide.Firing, `{"routing_key":"R","event_action":"trigger","dedup_key":"` + dedup + `","client":"Almanac","payload":{"summary":"u<1> failed & failed","source":"app","severity":"critical",` +
			`"timestamp":"2026-11-27T03:20:59Z","component":"u<1>","group":"logins","class":"Failed","custom_details":{"annotations":` + texts + `,"labels":` + labels + `,"starts_at":"2026-11-27T03:19:59Z","value":5}}}`},
		"pagerduty ends":     {decide.Call{Form: PagerDuty, RoutingKey: "R"}, decide.Inactive, `{"routing_key":"R","event_action":"resolve","dedup_key":"` + dedup + `"}`},
		"alertmanager fires": {decide.Call{Form: Alertmanager}, decide.Firing, `[{"labels":` + labels + `,"annotations":` + texts + `,"startsAt":"2026-11-27T03:19:59Z","endsAt":"2026-12-27T03:20:59Z"}]`},
		"alertmanager ends":  {decide.Call{Form: Alertmanager}, decide.Inactive, `[{"labels":` + labels + `,"annotations":` + texts + `,"startsAt":"2026-11-27T03:19:59Z","endsAt":"2026-11-27T03:20:59Z"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, bare, err := Body(notice(c.to), &c.call)
			want := strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(c.want) // as JSON for pages
			if err != nil || string(got) != want || bare != (c.call.Form != "" && c.call.Form != JSON) {
				t.Errorf("%v, bare %v\n%s\nwant\n%s", err, bare, got, want)
			}
			if !json.Valid(got) {
				t.Error("it is not JSON")
			}
		})
	}
	if _, _, err := Body(notice(decide.Firing), &decide.Call{Receiver: "x", Form: "fax"}); err == nil || !strings.Contains(err.Error(), `"fax"`) {
		t.Errorf("an unknown form: %v", err)
	}
}

// TestDedupKey holds that an alert has one key from its beginning to its end, and another than each other alert.
func TestDedupKey(t *testing.T) {
	begins, ends := notice(decide.Firing), notice(decide.Inactive)
	seen := map[string]string{DedupKey(begins): "itself"}
	if DedupKey(begins) != DedupKey(ends) {
		t.Error("its end has another key than its beginning")
	}
	for what, change := range map[string]func(*decide.Notice){
		"another group": func(n *decide.Notice) { n.Group = "x" }, "another rule": func(n *decide.Notice) { n.Rule = "x" },
		"another value": func(n *decide.Notice) { n.Value = "x" }, "a later one": func(n *decide.Notice) { n.Since++ },
		"names that join alike": func(n *decide.Notice) { n.Group, n.Rule = "loginsF", "ailed" },
	} {
		n := notice(decide.Firing)
		change(n)
		if same := seen[DedupKey(n)]; same != "" {
			t.Errorf("%s has the key of %s", what, same)
		}
		seen[DedupKey(n)] = what
	}
}

// TestSummary holds what PagerDuty takes of a long summary, and what a rule without one is called.
func TestSummary(t *testing.T) {
	n := notice(decide.Firing)
	n.Annotations = map[string]string{"summary": strings.Repeat("é", maxSummary+1)}
	n.Labels["severity"] = "Unheard"
	e := eventOf(n, "R")
	if len([]rune(e.Payload.Summary)) != maxSummary || e.Payload.Severity != "error" {
		t.Errorf("%d characters, severity %s", len([]rune(e.Payload.Summary)), e.Payload.Severity)
	}
	n.Annotations = nil
	if got := eventOf(n, "R").Payload.Summary; got != "Failed" {
		t.Errorf("without annotations: %q", got)
	}
	if a := alertOf(n); a.Annotations == nil {
		t.Error("annotations are null, which Alertmanager does not take")
	}
}
