package dispatch

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// TestLostAnswers loses every tenth answer to the dispatcher: those to its claims and outcomes, and messages of
// its reads. Every timer is called, and what was called twice has the same key.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var answers, lost atomic.Int64
	e.natsURL = embeddedtest.AnswersProxy(t, e.srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
		if !strings.HasPrefix(a.Subject, "_INBOX.") || a.Reply != "" || !strings.Contains(string(a.Data), `"stream":"TIMERS"`) || strings.Contains(string(a.Data), `"type"`) {
			return embeddedtest.Fate{} // only acknowledgements of what was published
		}
		if answers.Add(1)%10 != 0 {
			return embeddedtest.Fate{}
		}
		lost.Add(1)
		return embeddedtest.Fate{Drop: true}
	})
	e.dispatcher(nil)
	const n = 60
	base := time.Now().Add(time.Second)
	e.createAll(n, func(i int) time.Time { return base.Add(time.Duration(i) * 20 * time.Millisecond) })
	e.allOver()
	for i := range n {
		calls := e.got(fmt.Sprintf("id%d", i))
		if len(calls) != 1 { // an unknown claim is found out before the call, an unknown outcome after it
			t.Errorf("id%d: %+v", i, calls)
		}
	}
	if lost.Load() == 0 {
		t.Errorf("none of %d answers was lost", answers.Load())
	}
	t.Logf("%d of %d answers were lost", lost.Load(), answers.Load())
}
