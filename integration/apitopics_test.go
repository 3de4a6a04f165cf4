package integration

import (
	"strings"
	"testing"
)

// topicsOverHTTP declares a topic, and changes it as its plans say.
func topicsOverHTTP(t *testing.T, c *caller) {
	t.Helper()
	const fresh = `{"kind":"log","fields":[{"name":"status","type":"int64"}],"keep_days":30,"rotate":{"rows":1000}}`
	holds(t, c.send(200, "PUT", "/v1/topics/fresh?dry_run", fresh), `"did":"would be created"`, `"keep_days":30`)
	c.send(404, "GET", "/v1/topics/fresh", "")
	holds(t, c.send(200, "PUT", "/v1/topics/fresh", fresh), `"did":"created"`)
	as := string(c.get("/v1/topics/fresh"))
	holds(t, c.send(200, "PUT", "/v1/topics/fresh", as), `"did":"unchanged"`)

	c.send(200, "POST", "/v1/topics/fresh/events?ack=stored", `{"msg":"m","user_id":"u-1","email":"a@b.example"}`+"\n"+`{"msg":"m","status":7}`, "Content-Type", "application/x-ndjson")
	ruled := strings.Replace(as, `{`, `{"pii":[{"field":"email","rule":"drop"},{"field":"status","rule":"drop"},{"field":"message","rule":"hash"},{"field":"nothing","rule":"drop"}],`, 1)
	holds(t, c.send(200, "PUT", "/v1/topics/fresh?dry_run=true", ruled), `"did":"would be changed"`,
		`{"field":"email","rule":"drop","events_of_last_day":1}`, `{"field":"status","rule":"drop","events_of_last_day":1}`,
		`{"field":"message","rule":"hash","events_of_last_day":2}`, `{"field":"nothing","rule":"drop","events_of_last_day":0}`)

	shorter := strings.Replace(as, `"keep_days":30`, `"keep_days":2`, 1)
	holds(t, c.send(200, "PUT", "/v1/topics/fresh?dry_run", shorter), `"loss":[{"step":"drop","shards":1,"rows":2,`, `"sooner":[`)
	holds(t, c.send(409, "PUT", "/v1/topics/fresh", shorter), "events_would_go", "1 shard with about 2 events would be dropped")
	if now := string(c.get("/v1/topics/fresh")); now != as {
		t.Errorf("what was refused or only planned changed it to %s", now)
	}
	holds(t, c.send(200, "PUT", "/v1/topics/fresh?yes", shorter), `"did":"changed"`, `"keep_days":2`)

	holds(t, c.send(409, "PUT", "/v1/topics/fresh", `{"kind":"audit"}`), "unsupported_change", "kind")
	holds(t, c.send(400, "PUT", "/v1/topics/fresh", `{"keep_days":-1}`), "bad_topic", "keep_days")
	holds(t, c.send(400, "PUT", "/v1/topics/fresh", `{"name":"other"}`), "the topic of the path")
	holds(t, c.send(400, "PUT", "/v1/topics/Fresh", `{}`), "bad_topic_name")
	c.send(400, "PUT", "/v1/topics/fresh", `{"keep":1}`, "Wrong", "yes")
}
