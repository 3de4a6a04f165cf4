package integration

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// damagePairsEnv set to a file runs every cell of the table of pairs and writes each into the
// table there as it ends; make damage does. damagePairsOnly limits the cells to those whose name
// contains one of its parts, which bars separate: the table's other rows stay as they are.
const (
	damagePairsEnv  = "ALMANAC_DAMAGE_PAIRS"
	damagePairsOnly = "ALMANAC_DAMAGE_PAIRS_ONLY"
)

// Stores that a restore may restore to an older state, or lose, each by itself.
const (
	storeRegistry   = "registry"
	storeCopies     = "copies" // of what the registry says of erasures, descriptors, kinds
	storeClickHouse = "ClickHouse"
	storeSpool      = "spool"
	wholeNATS       = "NATS"                // all streams at once
	bothOfRegistry  = "registry and copies" // at once
)

var pairedStores = []string{"EVENTS", "SHARDS", "DOCS", "TIMERS", storeRegistry, storeClickHouse, storeSpool}

// What became of a store: it was restored from a copy, or it is gone. The others are as they were.
const (
	putOlder = "older"
	putLost  = "lost"
	// putPurged: what was routed has left EVENTS by its age.
	putPurged = "purged"
)

// pairCell says what became of each store that is not as it was.
type pairCell map[string]string

func (c pairCell) String() string {
	var words []string
	for _, s := range append([]string{wholeNATS, bothOfRegistry, storeCopies}, pairedStores...) {
		if c[s] != "" {
			words = append(words, s+" "+c[s])
		}
	}
	return strings.Join(words, ", ")
}

// state is what became of a store; empty: it is as it was.
func (c pairCell) state(store string) string {
	if s := c[wholeNATS]; s != "" && store != storeClickHouse && store != storeSpool {
		return s
	}
	if s := c[bothOfRegistry]; s != "" && (store == storeRegistry || store == storeCopies) {
		return s
	}
	return c[store]
}

// has reports whether any of the stores still has what came after the copy, or, where since is
// not set, what came before it.
func (c pairCell) has(since bool, stores ...string) bool {
	return slices.ContainsFunc(stores, func(s string) bool {
		return c.state(s) == "" || !since && c.state(s) == putOlder
	})
}

// pairCells are all single stores, all pairs, NATS as a whole, and the registry with its copies
// beside each other store: a NATS that is restored has both restored. Then what no pair can show: stores that are lost
// with the ones that would have given it back, after EVENTS let go of what was routed.
func pairCells() (cells []pairCell) {
	states := []string{putOlder, putLost}
	for i, a := range pairedStores {
		for _, s := range states {
			cells = append(cells, pairCell{a: s})
		}
		for _, b := range pairedStores[i+1:] {
			for _, s := range states {
				for _, u := range states {
					cells = append(cells, pairCell{a: s, b: u})
				}
			}
		}
	}
	for _, s := range states {
		cells = append(cells, pairCell{storeCopies: s}, pairCell{bothOfRegistry: s})
		for _, b := range pairedStores {
			for _, u := range states {
				if b != storeRegistry {
					cells = append(cells, pairCell{bothOfRegistry: s, b: u})
				}
			}
		}
		cells = append(cells, pairCell{wholeNATS: s}, pairCell{wholeNATS: s, storeClickHouse: putOlder}, pairCell{wholeNATS: s, storeSpool: putLost})
	}
	for _, s := range states {
		for _, u := range states {
			cells = append(cells, pairCell{"EVENTS": putPurged, "SHARDS": s, storeClickHouse: u})
		}
		for _, front := range []string{"DOCS", "TIMERS"} {
			cells = append(cells, pairCell{front: putOlder, "SHARDS": putLost, storeClickHouse: s})
		}
	}
	return cells
}

// pairSample is what make test runs.
var pairSample = []string{"NATS older"}

// TestDamagePairs restores an older copy of each store, and every two of them, of an Almanac that has
// events, documents, timers, an erasure and a retention before the copy and after it. In the end
// what could still be read is stored once, verify proves nothing that differs, a repair takes
// nothing away, and no erased person is found at any door.
func TestDamagePairs(t *testing.T) {
	t.Parallel()
	file, only := os.Getenv(damagePairsEnv), os.Getenv(damagePairsOnly)
	var mu sync.Mutex
	for _, c := range pairCells() {
		name := c.String()
		if file == "" && only == "" && !slices.Contains(pairSample, name) || !chosen(name, only) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := playPair(t, c)
			mu.Lock()
			defer mu.Unlock()
			if file == "" {
				return
			}
			if err := notePair(file, name, outcome); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// chosen reports whether a cell has one of the parts in its name; "NATS lost;" is that cell alone.
func chosen(name, only string) bool {
	return slices.ContainsFunc(strings.Split(only, "|"), func(part string) bool { return strings.Contains(";"+name+";", part) })
}

// notePair writes the outcome of a cell into the table of pairs.
func notePair(file, name, outcome string) error {
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	_, pairs, _ := strings.Cut(string(data), pairsBegin)
	results := readPairs(pairs)
	results[name] = outcome
	return writeDamage(file, nil, pairsTable(results))
}

// readPairs reads the rows of a table of pairs, of cells that are played.
func readPairs(table string) map[string]string {
	results := map[string]string{}
	for _, c := range pairCells() {
		if _, rest, ok := strings.Cut(table, "\n| "+c.String()+" | "); ok {
			outcome, _, _ := strings.Cut(rest, " |\n")
			if outcome != notRun {
				results[c.String()] = outcome
			}
		}
	}
	return results
}

const notRun = "not run"

// pairsBegin is where the table of pairs begins in the document, behind the other.
const pairsBegin = "## Older copies and lost stores\n"

// writeDamage writes one of the document's two tables, and leaves the one that is nil as it is.
func writeDamage(file string, table, pairs []byte) error {
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	first, second := data, []byte(nil)
	if i := bytes.Index(data, []byte(pairsBegin)); i >= 0 {
		first, second = data[:i], data[i:]
	}
	if table != nil {
		first = table
	}
	if pairs != nil {
		second = pairs
	}
	first = bytes.TrimRight(first, "\n")
	return os.WriteFile(file, slices.Concat(first, []byte("\n\n"), second), 0o644)
}

// pairsTable renders the section of the document.
func pairsTable(results map[string]string) []byte {
	var b bytes.Buffer
	counts := map[string]int{}
	for _, outcome := range results {
		counts[outcome]++
	}
	fmt.Fprint(&b, pairsBegin, "\nGenerated by `make damage`. Each cell is one run on real servers: events, documents and timers, an\n",
		"erasure and a retention came before the copy and after it; then the stores named were restored from the\n",
		"copy, or lost, and more came. What could still be read was stored once at the end, verify proved nothing that\n",
		"differed, and no erased person was found at any door, in every cell that does not say otherwise.\n\n| outcome | cells |\n|---|---|\n")
	for _, o := range sortedKeys(counts) {
		fmt.Fprintf(&b, "| %s | %d |\n", o, counts[o])
	}
	fmt.Fprint(&b, "\n| stores | outcome |\n|---|---|\n")
	for _, c := range pairCells() {
		outcome := results[c.String()]
		if outcome == "" {
			outcome = notRun
		}
		fmt.Fprintf(&b, "| %s | %s |\n", c, outcome)
	}
	return b.Bytes()
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
