package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/schemas"
)

// Entries that are not readable, of topics, months and shards that never were: verify names them, parts that start
// serve every other topic, and repair removes them.
func TestUnreadableKeysThatNeverWere(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.put(schemas.TopicKey("evil"), "{]")
	e.put(schemas.TopicKey("EVIL"), `{"name":"EVIL"}`)
	e.put(schemas.TopicKey("other"), `{"name":"app"}`)
	e.put(schemas.HeadKey("never", schemas.MonthOf(time.Now().UnixNano())), "{]")
	e.router()
	e.sink()
	e.say(e.producer("app"), 20)
	e.stored("app", 20, 60*time.Second)
	s := e.shards("app")[0]
	e.put(schemas.ShardKey("app", s.Month, s.ID+1), "{]")
	for _, key := range []string{"topics.evil", "topics.EVIL", "topics.other", schemas.ShardKey("app", s.Month, s.ID+1)} {
		rep, err := e.proof("")
		if err != nil || rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), key) {
			t.Errorf("verify does not name %s: %v, %v", key, rep.Problems, err)
		}
	}
	p := e.plan()
	if len(p.Actions) != 4 {
		t.Errorf("repair plans %+v", p.Actions)
	}
	for _, a := range p.Actions {
		if a.Do != "remove entry" {
			t.Errorf("repair would %s %s: %s", a.Do, a.Where, a.Detail)
		}
	}
	if err := e.repairer().Apply(t.Context(), p, func(_ *repair.Action, err error) {
		if err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	e.verify(20)
	e.say(e.producer("app"), 5)
	e.stored("app", 25, 60*time.Second)
	e.verify(25)
}
