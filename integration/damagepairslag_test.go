package integration

import (
	"time"

	"github.com/almanac-events/almanac/documents"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// lags reports whether the sink of the older month was behind that of this one, at the damage. Then DOCS alone has a
// record that lies below the last one stored of the lane.
func (h *pairCluster) lags() bool { return h.cell.String() == "SHARDS lost" }

// past opens the documents as a writer with a clock that is behind does: its records are of another month, so that
// the lane has shards of two.
func (h *pairCluster) past() (*documents.Collection, error) {
	return documents.Open(h.t.Context(), h.connect(), "customers", documents.Config{
		By: "test", Archive: archive.New(h.reg, h.db), Now: func() time.Time { return time.Now().AddDate(0, 0, -35) },
	})
}

// lag takes out of ClickHouse what a sink that was behind had not stored.
func (h *pairCluster) lag() {
	h.t.Helper()
	if h.lags() {
		h.exec("ALTER TABLE %s DELETE WHERE %s = 'past-2' SETTINGS mutations_sync = 2", h.table("customers"), kinds.ColDocID)
	}
}

// compareLagging fails unless what a sink had not stored is stored once.
func (h *pairCluster) compareLagging(fault func(string, ...any)) {
	h.t.Helper()
	if !h.lags() {
		return
	}
	n, err := h.ask("SELECT count() FROM %s WHERE %s = 'past-2'", h.table("customers"), kinds.ColDocID)
	if h.must(err); n != 1 {
		fault("the document that a sink had not stored has %d rows", n)
	}
}
