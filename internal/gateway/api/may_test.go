package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// Timers that call receivers of alerts are read, and no client changes them, whatever its rights.
func TestCallsOfAlertsAreNotChanged(t *testing.T) {
	t.Parallel()
	root := &access.Principal{Name: "root", Grants: []access.Grant{{Role: access.RoleAdmin}}}
	for op, changes := range map[*operations.Operation]bool{
		&operations.CreateTimer: true, &operations.UpdateTimer: true, &operations.DeleteTimer: true, &operations.FireTimer: true, &operations.RetryTimer: true, &operations.SetTimerGroup: true,
		&operations.Timers: false, &operations.Timer: false, &operations.TimerGroup: false, &operations.TimerGroups: false, &operations.TimerHistory: false,
	} {
		for _, topic := range []string{schemas.TopicAlertCalls, "timers"} {
			err := allowed(op, httptest.NewRequestWithContext(t.Context(), op.Method, "/x?topic="+topic, nil), root)
			denied := (*access.Denied)(nil)
			if own := errors.As(err, &denied) && denied.Own; own != (changes && topic == schemas.TopicAlertCalls) || !own && err != nil {
				t.Errorf("%s %s of %s: %v", op.Method, op.Path, topic, err)
			}
		}
	}
}

// Who may change timers and not read them is told what became of the request, and nothing of what the timer holds.
func TestChangedTimersAreShownToReaders(t *testing.T) {
	t.Parallel()
	tm := timers.Timer{Topic: "timers", Group: "mails", ID: "a", State: timer.StatePending, Revision: 3, Payload: json.RawMessage(`"hidden"`), URL: "https://hidden.example/", User: "hidden", Detail: "hidden"}
	grant := func(role access.Role) access.Grant { return access.Grant{Role: role, Topics: []string{"timers"}} }
	for name, c := range map[string]struct {
		who   access.Principal
		whole bool
	}{
		"a writer":            {access.Principal{Grants: []access.Grant{grant(access.RoleWrite)}}, false},
		"a reader of others":  {access.Principal{Grants: []access.Grant{grant(access.RoleWrite), {Role: access.RoleRead, Topics: []string{"app"}}}}, false},
		"a reader of rows":    {access.Principal{Where: "x = 1", Grants: []access.Grant{grant(access.RoleWrite), grant(access.RoleRead)}}, false},
		"a writer and reader": {access.Principal{Grants: []access.Grant{grant(access.RoleWrite), grant(access.RoleRead)}}, true},
		"an admin":            {access.Principal{Grants: []access.Grant{{Role: access.RoleAdmin}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := httptest.NewRecorder(), &API{}
			v, err := a.shown(w, httptest.NewRequestWithContext(access.With(t.Context(), &c.who), http.MethodPost, "/v1/timers/mails/a/fire?topic=timers", nil), http.StatusOK, tm, nil)
			if err != nil {
				t.Fatal(err)
			}
			said, ok := v.(status)
			text, err := json.Marshal(said.value)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			if whole := strings.Contains(string(text), "hidden"); whole != c.whole || !strings.Contains(string(text), `"revision":3`) || w.Header().Get("ETag") != `"3"` {
				t.Errorf("%s, ETag %s", text, w.Header().Get("ETag"))
			}
		})
	}
}
