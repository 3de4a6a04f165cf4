package integration

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// expiringDays is what "app" keeps when retention takes the old event.
const expiringDays = 40

// expire has retention take what is older than some days, among it the old event.
func (h *pairCluster) expire(days int) {
	h.t.Helper()
	topic, err := h.reg.Topic(h.t.Context(), "app")
	h.must(err)
	old := oldMonth()
	for _, s := range h.shards("app") {
		if s.Month == old && !s.Gone() {
			_, err := h.reg.Correct(h.t.Context(), s.Ref(), func(s *registry.Shard) bool { s.CreatedAt = s.CreatedAt.AddDate(0, 0, -3); return true })
			h.must(err)
		}
	}
	topic.KeepDays = days
	_, _, err = h.reg.Apply(h.t.Context(), topic, false)
	h.must(err)
	eventually(h.t, time.Minute, func() error {
		for _, s := range h.shards("app") {
			if s.Month == old && s.Status != registry.Dropped {
				return fmt.Errorf("not yet dropped: %s", describe(h.shards("app")))
			}
		}
		return nil
	})
}

func oldMonth() schemas.Month { return schemas.MonthOf(time.Now().AddDate(0, 0, -45).UnixNano()) }

// takenAgain fails unless retention takes again what it took, where the row of it came back: the
// registry forgot that it did.
func (h *pairCluster) takenAgain(fault func(string, ...any)) {
	h.t.Helper()
	if h.inTable()["old"] == 0 {
		return
	}
	topic, err := h.reg.Topic(h.t.Context(), "app")
	h.must(err)
	if known := h.cell.has(true, storeRegistry, storeCopies); known && topic.KeepDays != expiringDays {
		fault("what retention took is back, and the descriptor keeps %d days: it was said to keep %d", topic.KeepDays, expiringDays)
	}
	days := expiringDays
	for _, s := range h.shards("app") {
		if end := s.Month.End() - 1; s.Month == oldMonth() && s.MaxTs >= end { // a restored entry: it is retired by the end of its month
			days = int(time.Since(time.Unix(0, end))/(24*time.Hour)) - 1
		}
	}
	h.expire(days)
	if n := h.inTable()["old"]; n > 0 {
		fault("what retention took is stored %d times after it took it again", n)
	}
}
