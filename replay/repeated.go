package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/almanac-events/almanac/schemas"
)

// maxEnds bounds the shards whose ends a job remembers: two of them are some 260 KiB
// of its entry.
const maxEnds = 5000

// follow makes the job the one after the last of the same request into the same
// topic. It returns the id of one that has not ended, to be taken up instead.
//
// The job's id is derived from the one before, so that two who begin it at once have
// the same: one of them gets registry.ErrConflict, and what both sent is known to the
// router by the producer, which is derived from the id.
func (j *Job) follow(ctx context.Context, again bool) (open string, err error) {
	j.entry.Verb = verbInto
	j.state.Ends = map[schemas.Shard]uint64{}
	if again {
		return "", nil
	}
	jobs, err := j.r.cfg.Registry.Jobs(ctx, verbInto)
	if err != nil {
		return "", err
	}
	for _, e := range jobs { // the last one first
		var s state
		if err := s.read(e.State); err != nil {
			continue
		}
		if !s.Spec.same(j.spec) {
			if s.Spec.meets(j.spec) {
				j.meets = append(j.meets, e.ID)
			}
			continue
		}
		switch {
		case !e.Done:
			return e.ID, nil
		case len(s.Ends)+len(s.After) > 0:
			j.state.After = maps.Clone(s.After)
			if j.state.After == nil {
				j.state.After = map[schemas.Shard]uint64{}
			}
			maps.Copy(j.state.After, s.Ends)
		}
		j.state.Before = e.ID
		break
	}
	text, err := json.Marshal(j.spec.untimed())
	sum := sha256.Sum256(append(text, j.state.Before...))
	j.entry.ID = hex.EncodeToString(sum[:8])
	return "", err
}

// same reports whether two specs mean the same events, but for those routed between.
func (s Spec) same(other Spec) bool { return s.untimed() == other.untimed() }

// meets reports whether both specs may have events in common, and go to one topic.
// A filter is not looked into.
func (s Spec) meets(other Spec) bool {
	return s.Topic == other.Topic && s.Into == other.Into && s.From <= other.To && other.From <= s.To &&
		(s.Shard == 0 || other.Shard == 0 || s.Shard == other.Shard)
}

// Meets returns other jobs into the same topic whose requests overlap with this one's
// and are not the same. What both replay is in the topic twice. Known once a job began.
func (j *Job) Meets() []string { return j.meets }

// untimed is the spec without what does not choose events.
func (s Spec) untimed() Spec {
	s.UpTo, s.Order = 0, ""
	return s
}

// bound keeps a shard's part of a job into a topic between what was replayed before
// and where it ended when the job began. Later the streams may have fewer frames to
// tell that by.
func (j *Job) bound(s *shard) {
	if j.state.Ends == nil && j.state.After == nil {
		return
	}
	s.from = max(s.from, j.state.After[s.ID]+1)
	if j.entry.UpdatedAt.IsZero() { // not begun
		if s.to >= s.from {
			j.state.Ends[s.ID] = s.to
		}
		return
	}
	s.to = j.state.Ends[s.ID]
}

// bounded refuses a job whose ends are too many to remember.
func (j *Job) bounded() error {
	if n := max(len(j.state.Ends), len(j.state.After)); n > maxEnds {
		return refuse(ErrTarget, "%d shards into a topic, the limit is %d: replay them by --from and --to in several runs", n, maxEnds)
	}
	return nil
}
