package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// timersOverHTTP creates, reads, changes and cancels timers; nothing is due.
func timersOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	const base, in = "/v1/timers/mails", "?topic=timers"
	holds(t, c.send(404, "GET", "/v1/timers"+in, ""), "unknown_topic")
	holds(t, c.send(201, "PUT", base+"/config"+in, `{"slots":16,"max_pending":3,"retry_policy":{"max_attempts":3,"initial_interval":"1s"},"callback_timeout":"5s","allow_hosts":["*.example.com"]}`), `"slots":16`, `"max_attempts":3`)
	holds(t, c.get(base+"/config"+in), `"max_pending":3`, `"callback_timeout":"5s"`)
	holds(t, c.send(200, "PUT", base+"/config"+in, `{"max_pending":2}`), `"slots":16`, `"max_pending":2`)
	holds(t, c.send(409, "PUT", base+"/config"+in, `{"slots":32}`), "group-change")

	due := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"id":"a","execute_at":%q,"callback_url":"https://hooks.example.com/x","payload":{"n":1},"callback_timeout":"7s","max_lateness":"1m0s","user_id":"u-1","retry_policy":{"max_attempts":6,"initial_interval":"30s","backoff_multiplier":2,"max_interval":"5m0s","max_duration":"2h0m0s","retry_on":[429]}}`, due)
	holds(t, c.send(201, "POST", base+in, body), `"state":"pending"`, `"execute_at":"`+strings.TrimSuffix(due, "Z")+`.000000000Z"`, `"payload":{"n":1}`, `"max_attempts":6`, `"max_lateness":"1m0s"`, `"revision":1`)
	aliases := strings.NewReplacer("execute_at", "executeAt", "callback_url", "callbackUrl", "callback_timeout", "callbackTimeout", "max_lateness", "maxLateness", "user_id", "userId",
		`retry_policy":{"max_attempts":6`, `retryPolicy":{"maxRetries":5`, "initial_interval", "initialInterval", "backoff_multiplier", "backoffMultiplier", "max_interval", "maxInterval",
		"max_duration", "maxDuration", "retry_on", "retryOn", `"id"`, `"timerId"`).Replace(body)
	holds(t, c.send(200, "POST", base+in, aliases), `"revision":1`, `"max_attempts":6`)
	holds(t, c.send(409, "POST", base+in, strings.Replace(body, `"n":1`, `"n":2`, 1)), `"code":"exists"`)
	holds(t, c.send(200, "POST", base+in, strings.NewReplacer(`{"id"`, `{"replace":true,"id"`, `"n":1`, `"n":2`).Replace(body)), `"revision":2`)
	holds(t, c.get(base+"/a"+in), `"revision":2`, `"last":"updated"`)
	holds(t, c.send(412, "PATCH", base+"/a"+in, `{"execute_at":"+2h"}`, "If-Match", `"1"`), `"code":"revision"`, "has revision 2")
	holds(t, c.send(200, "PATCH", base+"/a"+in, `{"executeAt":"+2h"}`, "If-Match", `"2"`), `"revision":3`)
	holds(t, c.send(400, "PATCH", base+"/a"+in, `{"execute_at":"+2h"}`, "If-Match", `x`), "bad_header")
	holds(t, c.send(200, "POST", base+"/a/fire"+in, ""), `"revision":4`)
	holds(t, c.send(409, "POST", base+"/a/retry"+in, ""), "not-failed")

	holds(t, c.send(201, "POST", base+in, `{"id":"b","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`), `"revision":1`)
	// Its answer was lost, and it is sent again; the slot of "b" is 1,908,338,681 modulo 16.
	holds(t, c.send(200, "POST", base+in, `{"id":"b","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`), `"revision":1`, `"slot":9`, `"executed_at":null`)
	holds(t, c.send(409, "POST", base+in, `{"id":"b","execute_at":"+3h","callback_url":"https://hooks.example.com/"}`), `"code":"exists"`)
	holds(t, c.get(base+in+"&slot=9"), `{"timers":[{"group":"mails","id":"b"`, `"callback_url":"https://hooks.example.com/"`)
	holds(t, c.get(base+in+"&slot=8"), `{"timers":[]}`)
	holds(t, c.send(400, "GET", base+in+"&slot=4096", "", "Wrong", "1"), "slot")
	holds(t, c.send(429, "POST", base+in, `{"id":"c","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`), "group-full", "max_pending is 2")
	page := c.get(base + in + "&state=pending&limit=1&due_before=" + time.Now().Add(3*time.Hour).UTC().Format(time.RFC3339))
	holds(t, page, `"id":"a"`, `"cursor"`)
	holds(t, c.get(base+in+"&cursor="+cursorOf(t, page)), `"id":"b"`)
	holds(t, c.get("/v1/timers"+in), `"group":"mails"`, `"pending":2`)
	holds(t, c.get("/metrics"), "# TYPE almanac_timers_pending gauge", `almanac_timers_pending{group="mails",topic="timers"} 2`, `almanac_timers_largest_slot_ratio{group="mails",topic="timers"}`)
	holds(t, c.get(base+"/a/history"+in), `"last":"created"`, `"last":"updated"`)
	holds(t, c.send(412, "DELETE", base+"/b"+in, "", "If-Match", `"9"`), `"code":"revision"`)
	c.send(204, "DELETE", base+"/b"+in, "", "If-Match", `"1"`)
	holds(t, c.send(404, "DELETE", base+"/b"+in, ""), "not-found")
	eventually(t, time.Minute, func() error { // the count of what is pending is a second old at most
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+base, strings.NewReader(`{"id":"c","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 201 {
			return fmt.Errorf("c: %d", resp.StatusCode)
		}
		return nil
	})
	badTimersOverHTTP(t, c, base+in)
}

// badTimersOverHTTP holds that what cannot be scheduled is refused, each with its code.
func badTimersOverHTTP(t *testing.T, c *caller, path string) {
	t.Helper()
	one := func(more string) string {
		return `{"id":"z","execute_at":"+1h","callback_url":"https://hooks.example.com/"` + more + `}`
	}
	for code, body := range map[string]string{
		"due-missing": `{"id":"z","callback_url":"https://hooks.example.com/"}`, "due-not-a-time": `{"id":"z","execute_at":"soon","callback_url":"https://hooks.example.com/"}`,
		"due-past": `{"id":"z","execute_at":"2020-01-01T00:00:00Z","callback_url":"https://hooks.example.com/"}`, "bad-timeout": one(`,"callback_timeout":"0s"`),
		"bad-id": `{"id":"z.z","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`, "id-too-long": `{"id":"` + strings.Repeat("z", 256) + `","execute_at":"+1h","callback_url":"https://hooks.example.com/"}`,
		"url-too-long": `{"id":"z","execute_at":"+1h","callback_url":"https://hooks.example.com/` + strings.Repeat("z", 2049) + `"}`, "url-scheme": `{"id":"z","execute_at":"+1h","callback_url":"ftp://hooks.example.com/"}`,
		"payload-too-large": one(`,"payload":"` + strings.Repeat("z", 100<<10) + `"`), "bad-multiplier": one(`,"retry_policy":{"max_attempts":2,"backoff_multiplier":0.5}`),
		"bad-attempts": one(`,"retry_policy":{"max_attempts":2,"maxRetries":1}`), "bad-interval": one(`,"retry_policy":{"max_attempts":2,"initial_interval":"x"}`),
		"bad_json": one(`,"callbackUrl":"https://hooks.example.com/"`),
	} {
		holds(t, c.send(400, "POST", path, body, "Wrong", "1"), `"code":"`+code+`"`)
	}
	holds(t, c.send(400, "GET", path+"&slot=16", "", "Wrong", "1"), "slot 16: group mails has the slots 0 to 15")
	holds(t, c.send(404, "POST", strings.Replace(path, "mails", "none", 1), one("")), "unknown-group")
	holds(t, c.send(404, "GET", strings.Replace(path, "mails", "mails/none", 1), ""), "not-found")
}

func cursorOf(t *testing.T, page []byte) string {
	t.Helper()
	_, after, ok := strings.Cut(string(page), `"cursor":"`)
	cursor, _, _ := strings.Cut(after, `"`)
	if !ok {
		t.Fatalf("no cursor in %s", page)
	}
	return cursor
}
