package send

import "maps"

// Refusal is one refused record.
type Refusal struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
}

// maxRefusals is how many refusals are told one by one; the rest is counted.
const maxRefusals = 100

// Summary is what became of the records: the answer of `send` as JSON.
type Summary struct {
	Read     uint64 `json:"read"`
	Accepted uint64 `json:"accepted"`
	Refused  uint64 `json:"refused"`
	// Unknown records were sent and not answered: they may be stored.
	Unknown uint64 `json:"unknown"`
	// Spooled records are on this machine's disk, and not stored yet; Replayed is
	// the events of earlier sends that were stored from there.
	Spooled  uint64 `json:"spooled"`
	Replayed uint64 `json:"replayed"`
	SpoolDir string `json:"spool_dir,omitempty"`
	// NotSent records were read when the work ended: they are not stored.
	NotSent uint64 `json:"not_sent"`
	// NoTime records said no time and got that of their sending.
	NoTime uint64 `json:"no_time"`
	// TimeFields are keys of those that may have been meant for the time.
	TimeFields []string          `json:"time_fields,omitempty"`
	ByReason   map[string]uint64 `json:"by_reason"`
	// Refusals are the first ones, with their lines.
	Refusals []Refusal `json:"refusals"`
}

// Summary returns what became of the records until now.
func (t *Stats) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Summary{
		Read: t.read, Accepted: t.accepted, Refused: t.refusals(), Unknown: t.unknown, NotSent: t.unsent + t.waiting(), NoTime: t.noTime, TimeFields: t.others,
		Spooled: t.spooled, Replayed: t.replayed,
		ByReason: maps.Clone(t.refused), Refusals: append([]Refusal{}, t.first...),
	}
}
