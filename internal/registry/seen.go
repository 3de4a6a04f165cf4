package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A member says in its lease up to which revision of the registry it goes by the topics, so that a change of them can be
// waited for until all live members have it.

// leaseValue is what a lease says.
type leaseValue struct {
	Seen uint64 `json:"seen"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
}

// Saw notes that this member goes by the topics as they were at a revision, and by no older ones. The next beat
// publishes it.
func (m *Members) Saw(rev uint64) { m.sawUpTo.Store(rev) }

// leaseValue is what this member's lease says.
func (m *Members) leaseValue() string {
	host, _ := os.Hostname() // for people: empty is possible
	data, err := json.Marshal(leaseValue{Seen: m.sawUpTo.Load(), Host: host, PID: os.Getpid()})
	if err != nil {
		return "{}" // it cannot be: numbers and texts
	}
	return string(data)
}

// Member is a live member, for people.
type Member struct {
	Role string `json:"role"`
	Name string `json:"name"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
}

func (m Member) String() string {
	if m.PID == 0 {
		return fmt.Sprintf("%s %s", m.Role, m.Name)
	}
	return fmt.Sprintf("%s %s (%s)", m.Role, m.Name, process(m.PID, m.Host))
}

// process names one of a machine, for people.
func process(pid int, host string) string {
	return fmt.Sprintf("process %d on %s", pid, cmp.Or(host, "an unnamed host"))
}

// Revision is that of the registry's last change, of whatever key.
func (r *Registry) Revision(ctx context.Context) (uint64, error) {
	info, err := streams.Info(ctx, r.js, schemas.KVStream)
	if err != nil {
		return 0, fmt.Errorf("registry: %w", err)
	}
	return info.State.LastSeq, nil
}

// TopicRevision is that of the last change of a topic.
func (r *Registry) TopicRevision(ctx context.Context, name string) (uint64, error) {
	var t schemas.Topic
	return r.get(ctx, schemas.TopicKey(name), &t)
}

// seenEvery is how often AwaitSeen looks.
const seenEvery = 100 * time.Millisecond

// AwaitSeen waits until each live member of a role goes by the topics as they were at rev or later, and returns those
// that do not when within has passed. A member that renews its lease no longer and whose process does not answer is
// not waited for: it ended. One that is frozen is, for it goes on where it stood.
func (r *Registry) AwaitSeen(ctx context.Context, role string, rev uint64, within time.Duration) ([]Member, error) {
	m := &Members{reg: r, role: role}
	looked := map[string]lease{}
	end := time.Now().Add(within)
	for {
		var behind []Member
		prefix, now := len(schemas.LeaseKeys(role))-1, time.Now()
		err := r.scan(ctx, schemas.LeaseKeys(role), func(key string, at uint64, value []byte) error {
			var s leaseValue
			_ = json.Unmarshal(value, &s) // another's: it has seen nothing
			if s.Seen >= rev {
				return nil
			}
			name := key[prefix:]
			if l, ok := looked[name]; !ok || l.rev != at {
				looked[name] = lease{rev: at, at: now}
			}
			behind = append(behind, Member{Role: role, Name: name, Host: s.Host, PID: s.PID})
			return nil
		})
		if err != nil {
			return nil, err
		}
		behind = slices.DeleteFunc(behind, func(b Member) bool {
			l := looked[b.Name]
			if !l.gone && now.Sub(l.at) >= LeaseExpiry && m.unreachable(ctx, b.Name) {
				l.gone = true
				looked[b.Name] = l
			}
			return l.gone
		})
		if len(behind) == 0 || !now.Before(end) {
			slices.SortFunc(behind, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
			return behind, nil
		}
		select {
		case <-ctx.Done():
			return behind, ctx.Err()
		case <-time.After(seenEvery):
		}
	}
}
