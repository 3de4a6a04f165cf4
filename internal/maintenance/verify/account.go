package verify

import (
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
)

// report adds up what was found: what was accepted is stored, dead, lost, or still on its way.
func (l *look) report() *TopicReport {
	rep := &TopicReport{Topic: l.topic.Name}
	rep.Taken.Frames = l.frames.taken
	var inShards, expected uint64
	kept := int64(0)
	for i := range l.shards {
		s := &l.shards[i]
		if s.taken {
			rep.Taken.Shards++
			rep.Taken.Rows += s.Stored
			rep.Taken.since(s.provenAt)
		}
		rep.Shards = append(rep.Shards, *s.ShardReport)
		rep.Stored += s.Stored
		rep.Missing += s.missing()
		rep.Doubled += s.doubled()
		rep.Dropped += s.Dropped
		rep.Erased += s.Erased
		inShards += s.Routed
		expected += s.Expected + s.Erased
		kept += s.kept
	}
	rep.Shards = append(rep.Shards, l.unknown...)

	lost, lostRows := verifyLost(l.topic.Name, l.routed)
	routed := uint64(0)
	for _, c := range l.routed {
		routed += c.Rows
		rep.Dead += c.Dead
		rep.Repeated += c.RepeatedRows
	}
	routed = uint64(max(0, int64(routed)+kept))
	rep.Missing += lostRows
	rep.Accepted = routed + rep.Dead + l.waiting + lostRows
	rep.Pending = l.waiting + routed - min(routed, expected)
	rep.resolve(l.letters)

	var ahead []string
	if inShards > routed { // the shards were read before the checkpoints: they may lag, never lead
		ahead = []string{fmt.Sprintf("topic %s: its shards have %d rows, its checkpoints say %d were routed", l.topic.Name, inShards, routed)}
	}
	for _, problems := range [][]string{l.problems, lost, ahead} {
		if len(problems) > 0 {
			rep.Shards = append(rep.Shards, ShardReport{Name: l.topic.Name, Problems: problems})
		}
	}
	return rep
}

// resolve takes the dead letters that people dealt with out of the dead: those
// sent again were accepted again and count there, those dropped are discarded.
func (t *Totals) resolve(l registry.Letters) {
	t.Accepted -= min(t.Accepted, l.Retried)
	t.Discarded = l.Dropped
	t.Dead -= min(t.Dead, l.Retried+l.Dropped)
}
