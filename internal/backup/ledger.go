package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// ledgerMagic begins the first line of a ledger's file.
const ledgerMagic = "almanac-ledger"

// Ledger is what is known of erasures.
type Ledger struct {
	// Cluster tells the Almanac that it is of from others (registry.Cluster).
	Cluster string
	// At is the time up to which all are known. A ledger follows another only where it is the later one (Follows).
	At time.Time
	// Erasures by key. One that was forgotten, as those of a topic that was removed, has no value.
	Erasures map[string]schemas.LedgerCopy
}

// ReadLedger is that of a registry, as of now.
func ReadLedger(ctx context.Context, reg *registry.Registry) (Ledger, error) {
	at := time.Now()
	cluster, err := reg.Cluster(ctx)
	if err != nil {
		return Ledger{}, err
	}
	entries, err := reg.KeptHere(ctx)
	return LedgerOf(cluster, entries, at), err
}

// LedgerOf are the erasures among entries of a registry that was read at a time.
func LedgerOf(cluster string, entries map[string]schemas.LedgerCopy, at time.Time) Ledger {
	l := Ledger{cluster, at, map[string]schemas.LedgerCopy{}}
	for key, k := range entries {
		if erasure, _ := schemas.InLedger(key); erasure {
			l.Erasures[key] = k
		}
	}
	return l
}

// ledgerFile and entry are a ledger as its file has it.
type ledgerFile struct {
	Cluster  string    `json:"cluster"`
	At       time.Time `json:"at"`
	Erasures []entry   `json:"erasures"`
}

type entry struct {
	Key   string          `json:"key"`
	Count uint64          `json:"count"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Encode is the ledger as a file.
func (l *Ledger) Encode() ([]byte, error) {
	f := ledgerFile{l.Cluster, l.At.UTC(), []entry{}}
	for key, k := range l.Erasures {
		f.Erasures = append(f.Erasures, entry{key, k.Count, k.Value})
	}
	slices.SortFunc(f.Erasures, func(a, b entry) int { return strings.Compare(a.Key, b.Key) })
	body, err := json.MarshalIndent(&f, "", " ")
	if err != nil {
		return nil, fmt.Errorf("backup: ledger: %w", err)
	}
	body = append(body, '\n')
	return append(fmt.Appendf(nil, "%s %d %s\n", ledgerMagic, Format, digest(body)), body...), nil
}

// DecodeLedger reads such a file.
func DecodeLedger(name string, text []byte) (l Ledger, err error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	if string(line) != fmt.Sprintf("%s %d %s", ledgerMagic, Format, digest(body)) {
		return l, fmt.Errorf("%w: %s is not a ledger as `almanac erase export` writes it, or was cut or changed", ErrTorn, name)
	}
	var f ledgerFile
	if err := json.Unmarshal(body, &f); err != nil {
		return l, fmt.Errorf("%w: %s: %w", ErrTorn, name, err)
	}
	entries := map[string]schemas.LedgerCopy{}
	for _, e := range f.Erasures {
		entries[e.Key] = schemas.LedgerCopy{Key: e.Key, Count: e.Count, Value: e.Value}
	}
	return LedgerOf(f.Cluster, entries, f.At), nil
}

// Newest joins ledgers: of each erasure the entry that was written most often.
func Newest(ledgers ...Ledger) Ledger {
	out := Ledger{Erasures: map[string]schemas.LedgerCopy{}}
	for _, l := range ledgers {
		out.Cluster = cmp.Or(out.Cluster, l.Cluster)
		if l.At.After(out.At) {
			out.At = l.At
		}
		for key, k := range l.Erasures {
			if k.Count > out.Erasures[key].Count {
				out.Erasures[key] = k
			}
		}
	}
	return out
}

// Follows refuses a ledger that does not go on from what backups know, with ErrOldLedger: it is older, or of another Almanac.
func (l *Ledger) Follows(known *Ledger) error {
	if known.Cluster != "" && l.Cluster != known.Cluster {
		return fmt.Errorf("%w: it is of another Almanac than the backups", ErrOldLedger)
	}
	if !l.At.After(known.At) {
		return fmt.Errorf("%w: it is as of %s, and the backups know of all until %s", ErrOldLedger, l.At.Format(time.RFC3339), known.At.Format(time.RFC3339))
	}
	for _, key := range slices.Sorted(maps.Keys(known.Erasures)) {
		if l.Erasures[key].Count < known.Erasures[key].Count {
			topic, id := erasureOf(key)
			return fmt.Errorf("%w: it lacks the erasure %s of topic %s, or what became of it, which the backups know: it is of another Almanac, or was itself restored", ErrOldLedger, id, topic)
		}
	}
	return nil
}

// erasureOf is what the key of an erasure names.
func erasureOf(key string) (topic, id string) {
	topic, id, _ = strings.Cut(strings.TrimPrefix(key, schemas.LedgerPrefix), ".")
	return topic, id
}

// Ledger is that of a backup.
func (s *Store) Ledger(ctx context.Context, m *Manifest) (Ledger, error) {
	text, err := s.Read(ctx, m.Ledger)
	if err != nil {
		return Ledger{}, s.removed(ctx, m, err, anotherBackup)
	}
	return DecodeLedger("the ledger of "+m.Name(), text)
}

// missed is what is to be entered of a newer ledger where streams and tables are of a backup.
type missed struct {
	enter []ledger.Erasure
	count map[string]uint64 // by key
	// unknown are erasures that were redacted or forgotten since: whom they named is not known.
	unknown []string
	// purge are erasures whose frames and dead letters were purged since.
	purge []Erasure
	// redact are erasures that were redacted or forgotten since, and name persons again.
	redact []Erasure
}

// Erasure names one of a topic.
type Erasure struct{ Topic, ID string }

// miss decides which erasures of a newer ledger the restored one lacks.
func miss(newer, here map[string]schemas.LedgerCopy, topics map[string]bool) (m missed, err error) {
	m.count = map[string]uint64{}
	for key, k := range newer {
		was := here[key]
		if k.Count <= was.Count {
			continue
		}
		var e, old ledger.Erasure
		if len(k.Value) == 0 { // forgotten: it names no one, as one that was redacted
			e.Topic, e.ID = erasureOf(key)
			e.Redacted = true
		} else if err := json.Unmarshal(k.Value, &e); err != nil {
			return m, fmt.Errorf("backup: the entry %s of the ledger: %w", key, err)
		}
		if len(was.Value) > 0 {
			if err := json.Unmarshal(was.Value, &old); err != nil {
				return m, fmt.Errorf("backup: the entry %s of the restored ledger: %w", key, err)
			}
		}
		if topics[e.Topic] && e.Purged != nil && old.Purged == nil && (!e.Redacted || old.ID != "") {
			m.purge = append(m.purge, Erasure{e.Topic, e.ID})
		}
		if topics[e.Topic] && e.Redacted && old.ID != "" && !old.Redacted {
			m.redact = append(m.redact, Erasure{e.Topic, e.ID})
		}
		switch {
		case !topics[e.Topic], old.State == ledger.Erased: // no row of it can be there
			continue
		case e.Redacted && old.ID == "":
			m.unknown = append(m.unknown, e.ID+" of topic "+e.Topic)
			continue
		case e.Redacted:
			e = old
		}
		m.enter = append(m.enter, e)
		m.count[key] = max(k.Count, was.Count+1)
	}
	slices.SortFunc(m.enter, func(a, b ledger.Erasure) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(m.unknown)
	for _, of := range [][]Erasure{m.purge, m.redact} {
		slices.SortFunc(of, func(a, b Erasure) int { return strings.Compare(a.ID, b.ID) })
	}
	return m, nil
}

// renewed is an erasure as it is entered in a restored Almanac: as if it had just been asked for. Everything that was restored came
// before its fence, so it ends once that is stored.
func renewed(e *ledger.Erasure) ledger.Erasure {
	n := *e
	n.State, n.Bounds, n.Tails, n.StoredAt, n.ErasedAt = ledger.Waiting, nil, nil, time.Time{}, time.Time{}
	n.Rows, n.Shards, n.Diffs, n.Purged = 0, 0, 0, nil
	return n
}

// Entered is what EnterLedger did.
type Entered struct {
	Erasures []string // ids
	// Unknown are erasures that were redacted or forgotten since the backup: what they named cannot be taken out.
	Unknown []string
	// Purge are those whose frames and dead letters were purged since: they are to be purged again once they ended (Eraser.Purge).
	Purge []Erasure
	// Redact are those that were redacted or forgotten since, and name persons again: they are to be redacted again once they ended
	// (Eraser.RedactAgain).
	Redact []Erasure
}

// EnterLedger enters the erasures of a newer ledger that the restored registry lacks. From then on no reader gives out what they
// mean. They are carried out by an Eraser's Run, once routers and sinks stored what was on its way.
func EnterLedger(ctx context.Context, reg *registry.Registry, newer *Ledger) (Entered, error) {
	entries, err := reg.KeptHere(ctx)
	if err != nil {
		return Entered{}, err
	}
	here := LedgerOf("", entries, time.Time{})
	topics, err := reg.Topics(ctx)
	if err != nil {
		return Entered{}, err
	}
	known := map[string]bool{}
	for i := range topics {
		known[topics[i].Name] = true
	}
	m, err := miss(newer.Erasures, here.Erasures, known)
	if err != nil {
		return Entered{}, err
	}
	out := Entered{Unknown: m.unknown, Purge: m.purge, Redact: m.redact}
	for i := range m.enter {
		e := &m.enter[i]
		next := renewed(e)
		value, err := json.Marshal(&next)
		if err != nil {
			return out, fmt.Errorf("backup: ledger: %w", err)
		}
		if _, err := reg.Adopt(ctx, schemas.LedgerCopy{Key: e.Key(), Count: m.count[e.Key()], Value: value}); err != nil {
			return out, err
		}
		out.Erasures = append(out.Erasures, e.ID)
	}
	return out, nil
}
