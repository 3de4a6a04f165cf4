package repair

import (
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Do is a kind of action.
type Do string

// The kinds of actions, in the order in which they are carried out.
const (
	// RestoreShard writes a shard's lost entry, RestoreMonth a lost head entry or
	// one that does not name what is there.
	RestoreShard Do = "restore shard"
	RestoreMonth Do = "restore month"
	// Store stores frames above the head, as a sink does.
	Store Do = "store"
	// DropCopies leaves one of rows that are the same in every column.
	DropCopies Do = "drop copies"
	// DropStrange removes rows that no frame brought. They stand in the place of others.
	DropStrange Do = "drop strange rows"
	// Insert inserts rows that are missing below the head.
	Insert Do = "insert"
	// DropMoved removes rows that stand at others' positions and at their own too.
	DropMoved Do = "drop moved rows"
	// Acknowledge notes positions that SHARDS no longer holds and ClickHouse does.
	Acknowledge Do = "settle"
	// CorrectShard sets an entry's numbers right.
	CorrectShard Do = "correct shard"
	// RestoreCheckpoint writes a lane's lost checkpoint.
	RestoreCheckpoint Do = "restore checkpoint"
	// RestoreTopic writes a topic's lost descriptor.
	RestoreTopic Do = "restore topic"
	// RemoveEntry removes an entry of the registry that is not readable and of which nothing else speaks.
	RemoveEntry Do = "remove entry"
	// AdvanceFront has a front go on above the sequences that were routed, RestoreStubs writes
	// stubs of documents that it lost.
	AdvanceFront Do = "advance front"
	RestoreStubs Do = "restore stubs"
	// RestoreTimers makes timers pending that a front lost, DropEnded takes out of it those that ended, and PutAgain
	// gives sequences of their own to records that took those of others.
	RestoreTimers Do = "restore timers"
	DropEnded     Do = "drop ended timers"
	PutAgain      Do = "put again"
	// DropMisplaced takes out of a front what is not a record and took the place of what is nowhere.
	DropMisplaced Do = "drop stray"
	// LeaveShard has a lane go on in another shard than one of which ClickHouse has more than SHARDS.
	LeaveShard Do = "leave shard"
	// Lost names what no source holds any more. Nothing is done.
	Lost Do = "lost"
)

// State is what became of an action.
type State string

// The states of an action.
const (
	Planned State = "planned"
	Done    State = "done"
	Failed  State = "failed"
	// Beyond: nothing can be done; only for Lost.
	Beyond State = "beyond repair"
)

// Action is one step of a plan.
type Action struct {
	Do    Do     `json:"do"`
	Topic string `json:"topic"`
	// Where is a shard's public name, a lane or a registry key.
	Where string `json:"where"`
	// From and To are positions, inclusive; 0 when it is not about positions.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// Rows that come back, go, or are lost.
	Rows uint64 `json:"rows,omitempty"`
	// Source is where they come from: SHARDS, EVENTS, ClickHouse, or several.
	Source string `json:"source,omitempty"`
	Detail string `json:"detail"`
	State  State  `json:"state"`

	ref       schemas.ShardRef
	topic     *schemas.Topic
	lo, hi    uint64 // of Insert, DropCopies, DropStrange and DropMoved: above lo, up to hi
	frames    []link // of Store, DropStrange, DropMoved and Insert, in order
	chain     chain  // of DropMoved: all of the shard
	entry     registry.Shard
	head      registry.Head
	chains    map[schemas.Shard]chain // of RestoreMonth
	lane      *lostLane
	front     uint64            // of AdvanceFront: the sequence to reach
	ends      routedEnds        // of AdvanceFront and PutAgain
	lost      []records.Lost    // of RestoreStubs, RestoreTimers and DropEnded
	misplaced map[string]uint64 // of DropMisplaced: by subject, the sequence of its last message
	odd       *registry.UnreadableError
}

// Positions are the action's positions for people: "7", "7–9" or "".
func (a *Action) Positions() string {
	switch {
	case a.To == 0:
		return ""
	case a.From == a.To:
		return fmt.Sprint(a.From)
	}
	return fmt.Sprintf("%d–%d", a.From, a.To)
}

// sources names where frames come from.
func sources(frames []link) string {
	var names []string
	for _, s := range []struct {
		name string
		is   func(*link) bool
	}{
		{schemas.StreamShards, func(l *link) bool { return l.seq > 0 }},
		{schemas.StreamEvents, func(l *link) bool { return l.seq == 0 }},
	} {
		for i := range frames {
			if s.is(&frames[i]) {
				names = append(names, s.name)
				break
			}
		}
	}
	return strings.Join(names, ", ")
}

// Plan is what has to be done, in order.
type Plan struct {
	Actions []Action `json:"actions"`
	// Notes say what could not be known and which default stands in for it.
	Notes []string `json:"notes,omitempty"`

	odd      []*registry.UnreadableError // that were met
	removals map[string]registry.Removal // that were known
}

func (p *Plan) add(a Action) {
	if a.State = Planned; a.Do == Lost {
		a.State = Beyond
	}
	p.Actions = append(p.Actions, a)
}

func (p *Plan) note(format string, a ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, a...)) }

// Todo is how many actions there are to carry out.
func (p *Plan) Todo() (n int) {
	for i := range p.Actions {
		if p.Actions[i].Do != Lost {
			n++
		}
	}
	return n
}
