package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Format is the number of the layout. It changes when an older Almanac could not read a backup any more.
const Format = 2

// Object is a file by its content.
type Object struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// File is a file of tables.
type File struct {
	Path string `json:"path"`
	Object
}

// Chunk is a file of a stream.
type Chunk struct {
	Last uint64 `json:"last"` // the sequence of its last message
	Object
}

// Stream is the copy of a stream.
type Stream struct {
	Name     string          `json:"name"`
	First    uint64          `json:"first"`
	Last     uint64          `json:"last"`
	LastTime time.Time       `json:"last_time,omitzero"` // when the last message was stored
	Messages uint64          `json:"messages"`           // records, also of messages that were deleted since
	Config   json.RawMessage `json:"config"`
	Chunks   []Chunk         `json:"chunks"`
	// Transient are the chunks of messages that are purged soon (transient). Among the others they would change what lies around them.
	Transient []Chunk `json:"transient,omitempty"`
}

// each calls f with each file of both series, with what it is.
func (s *Stream) each(f func(what string, o Object) error) error {
	for what, series := range [][]Chunk{s.Chunks, s.Transient} {
		for n, c := range series {
			if err := f(fmt.Sprintf("stream %s: %s %d", s.Name, [...]string{"chunk", "transient chunk"}[what], n), c.Object); err != nil {
				return err
			}
		}
	}
	return nil
}

// bytes is how large the files are.
func (s *Stream) bytes() (n int64) {
	_ = s.each(func(_ string, o Object) error { n += o.Size; return nil })
	return n
}

// stream is the copy of a stream by its name, an empty one where there is none.
func (m *Manifest) stream(name string) Stream {
	if m != nil {
		for _, s := range m.Streams {
			if s.Name == name {
				return s
			}
		}
	}
	return Stream{}
}

// copiedStreams are the streams of a backup.
func copiedStreams() []string {
	return []string{schemas.CopiesStream, schemas.KVStream, schemas.StreamDocs, schemas.StreamTimers, schemas.StreamEvents, schemas.StreamShards}
}

// Table is a table of the copy, as ClickHouse counted it before.
type Table struct {
	Name       string `json:"name"`
	Rows       uint64 `json:"rows"`
	Partitions uint64 `json:"partitions"` // one for each shard
	Policy     string `json:"policy"`     // where its parts lay
}

// Group are tables that one statement copied.
type Group struct {
	Name   string  `json:"name"`
	Tables []Table `json:"tables"`
	Files  []File  `json:"files"`
}

// byPolicy are the names of tables whose storage policy the target knows, and of those whose policy it does not.
func byPolicy(tables []Table, knows func(policy string) bool) map[bool][]string {
	out := map[bool][]string{}
	for _, t := range tables {
		known := knows(t.Policy)
		out[known] = append(out[known], t.Name)
	}
	return out
}

// Manifest is what a backup has.
type Manifest struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of the Almanac that wrote it
	// Cluster tells the Almanac that it is of from others (registry.Cluster).
	Cluster string `json:"cluster"`
	// Database has the tables.
	Database string `json:"database"`
	// Point is the time as of which events are: what was acknowledged up to it is there, and nothing newer.
	Point time.Time `json:"point"`
	// Fronts is the time up to which documents and timers are there, a moment later.
	Fronts time.Time `json:"fronts"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`

	Groups  []Group  `json:"groups"`
	Streams []Stream `json:"streams"`
	// Ledger has the erasures that were entered until the copy ended.
	Ledger Object `json:"ledger"`

	// Bytes are all of the backup's, NewBytes those that no earlier one had.
	Bytes    int64 `json:"bytes"`
	NewBytes int64 `json:"new_bytes"`
}

// Suffix ends the name of a manifest.
const Suffix = ".backup"

// Name is the manifest's file: names sort as the points do.
func (m *Manifest) Name() string {
	return m.Point.UTC().Format("20060102T150405.000000000Z") + Suffix
}

// follows refuses a backup that cannot lie beside the newest of a place, nil where there is none. Its own point is zero before it is known.
func (m *Manifest) follows(newest *Manifest) error {
	switch {
	case newest == nil:
	case newest.Cluster != m.Cluster:
		return fmt.Errorf("%w: it has backups of another Almanac: nothing was changed there; name a place of its own for each", ErrNotOurs)
	case !m.Point.IsZero() && !m.Point.After(newest.Point):
		return fmt.Errorf("%w: its point in time would be %s, and that of the newest backup is %s: a clock was set back. Name another place, in which the first backup copies all of it",
			ErrNotOurs, m.Point.Format(time.RFC3339Nano), newest.Point.Format(time.RFC3339Nano))
	}
	return nil
}

// Objects calls f for each object of the backup, with what it is.
func (m *Manifest) Objects(f func(what string, o Object) error) error {
	for i := range m.Groups {
		for _, x := range m.Groups[i].Files {
			if err := f("tables "+m.Groups[i].Name+": "+x.Path, x.Object); err != nil {
				return err
			}
		}
	}
	for i := range m.Streams {
		if err := m.Streams[i].each(f); err != nil {
			return err
		}
	}
	return f("the ledger", m.Ledger)
}

// magic begins a manifest's first line, which has the digest of all that follows it.
const magic = "almanac-backup"

// Encode is the manifest as its file has it.
func (m *Manifest) Encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("backup: manifest: %w", err)
	}
	body = append(body, '\n')
	return append(fmt.Appendf(nil, "%s %d %s\n", magic, Format, digest(body)), body...), nil
}

// Decode reads a manifest. ErrTorn: it is not whole, or a byte of it differs.
func Decode(name string, text []byte) (*Manifest, error) {
	line, body, ok := bytes.Cut(text, []byte("\n"))
	words := strings.Split(string(line), " ")
	if !ok || len(words) != 3 || words[0] != magic {
		return nil, fmt.Errorf("%w: %s does not begin as a manifest does", ErrTorn, name)
	}
	if words[2] != digest(body) {
		return nil, fmt.Errorf("%w: %s does not have the digest that it names: it was cut or changed", ErrTorn, name)
	}
	if words[1] != fmt.Sprint(Format) {
		return nil, fmt.Errorf("%w: %s has format %s, this Almanac reads %d: use the one that wrote it", ErrFormat, name, words[1], Format)
	}
	var m Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTorn, name, err)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTorn, name, err)
	}
	return &m, nil
}

// check refuses what no backup has, whatever digest it comes with: names that would lead out of where files are read and written, and streams
// that are another's.
func (m *Manifest) check() error {
	at := 0
	for i := range m.Groups {
		g := &m.Groups[i]
		n := slices.Index(groups[at:], g.Name)
		if n < 0 {
			return fmt.Errorf("it has the group of tables %q there", g.Name)
		}
		at += n + 1
		for _, f := range g.Files {
			if !filepath.IsLocal(f.Path) {
				return fmt.Errorf("it names the file %q", f.Path)
			}
		}
	}
	var names []string
	for i := range m.Streams {
		names = append(names, m.Streams[i].Name)
	}
	slices.Sort(names)
	if all := slices.Sorted(slices.Values(copiedStreams())); !slices.Equal(names, all) {
		return fmt.Errorf("it has the streams %v, want %v", names, all)
	}
	return m.Objects(func(what string, o Object) error {
		if sum, err := hex.DecodeString(o.SHA256); err != nil || len(sum) != sha256.Size || o.SHA256 != strings.ToLower(o.SHA256) || o.Size < 0 {
			return fmt.Errorf("%s has the digest %q and %d bytes", what, o.SHA256, o.Size)
		}
		return nil
	})
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
