package faults

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// metered is a topic of kind meter in stages.
type metered struct {
	*staged
	focus []inputtest.FocusLine // absent without the file
	// writers is how many diffs twenty writers send.
	writers int
	dropped bool            // retention dropped the rows
	gone    map[string]bool // spaces that were erased
}

// TestMetersUnderKills crosses the acceptance of kind meter with what may happen to it. The diffs of known months, of
// twenty writers and of a real bill, each sent two or three times and shuffled, as events and as JSON, with bad ones among
// them, are billed in each stage while router, sink, rollups and the engine are killed in turn. Every number is exact: once
// all is stored, while it is derived, when sums were lost, a partition too, after rebuilds, in a second topic into which it
// is replayed, after a customer was erased, and when retention dropped the rows. ALMANAC_METER_KILLS kills in each
// stage: four kill each part once. ALMANAC_METER_DIFFS are the diffs of each writer.
func TestMetersUnderKills(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	topic := schemas.Topic{Name: "usage", Kind: kinds.Meter, Lanes: 2, Rotate: schemas.Rotation{Rows: 1000}, Fields: []schemas.Field{{Name: "amount", Type: schemas.TypeDecimal}}}
	m := &metered{staged: stagedTopic(ctx, t, topic, number("ALMANAC_METER_KILLS", 1)), writers: 20 * number("ALMANAC_METER_DIFFS", 10), focus: inputtest.FocusBill(t), gone: map[string]bool{}}
	m.answers, m.counted, m.bad = m.bills, m.allCounted, badDiffs
	if m.focus == nil {
		t.Log("no folder shared/data: without the bill of FOCUS")
	}
	m.run([]stage{
		{"sent", m.send},
		{"derived", m.derive},
		{"sums lost", m.loseSums},
		{"partition lost, repaired", m.repair},
		{"rebuilt", func() { m.rebuild("usage") }},
		{"replayed", m.replay},
		{"replayed and rebuilt", func() { m.rebuild(copyTopic) }},
		{"erased", m.eraseCustomer},
		{"erased and rebuilt", func() { m.rebuild("usage") }},
		{"dropped by retention", m.drop},
		{"dropped and rebuilt", func() { m.rebuild("usage") }},
	})
}
