package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what a backup is made of. All but Progress are required.
type Config struct {
	NC       *nats.Conn
	Registry *registry.Registry
	DB       *tables.DB
	Store    *Store
	// Files is where ClickHouse keeps its own backups, as this process sees it.
	Files string
	// Version is that of this Almanac.
	Version string
	// Progress is told what is being copied, and how many bytes of it are.
	Progress func(Progress)
}

// Progress is how far a backup or restore is.
type Progress struct {
	What  string
	Bytes int64
}

func (c *Config) tell(what string, bytes int64) {
	if c.Progress != nil {
		c.Progress(Progress{what, bytes})
	}
}

// The groups of tables, in the order in which they are copied.
const (
	groupLedger  = "ledger"
	groupDerived = "derived"
	groupTopics  = "topics"
)

var groups = []string{groupLedger, groupDerived, groupTopics}

// groupOf is where a table belongs. What is derived from a topic's rows has a dot in its name.
func groupOf(table string) string {
	switch {
	case table == schemas.TableLedger:
		return groupLedger
	case strings.Contains(table, "."):
		return groupDerived
	}
	return groupTopics
}

// Run makes a backup and returns its manifest.
func Run(ctx context.Context, cfg Config) (*Manifest, error) {
	release, err := useFiles(cfg.Files, cfg.Store)
	if err != nil {
		return nil, err
	}
	defer release()
	js, err := jetstream.New(cfg.NC)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	m := &Manifest{Format: Format, Version: cfg.Version, Database: cfg.DB.Database, Began: time.Now().UTC()}
	if m.Cluster, err = cfg.Registry.NameCluster(ctx); err != nil {
		return nil, err
	}
	base, err := cfg.Store.Newest(ctx)
	if errors.Is(err, ErrTorn) {
		base, err = nil, nil // all is copied again
	}
	if errors.Is(err, ErrFormat) {
		return nil, fmt.Errorf("%w, or give another place: backups of two formats do not share one", err)
	}
	if err != nil {
		return nil, err
	}
	if err := m.follows(base); err != nil {
		return nil, err
	}
	held, copying, err := streams.BeginCopying(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	defer copying.End(ctx)
	err = cfg.copies(held, js, m, base)
	switch lost := copying.Still(ctx); {
	case errors.Is(lost, streams.ErrPurged):
		err = fmt.Errorf("backup: %w, since one of them is more than 80 %% full, what holds a lane or a shard up was taken out of SHARDS, or NATS was away for a minute: give it more room (almanac streams apply) where it is full, and run it again", lost)
	case lost != nil && err == nil:
		err = fmt.Errorf("backup: whether janitors waited for it is not known: %w: run it again, it writes what is new", lost)
	}
	if err != nil {
		return nil, err
	}
	known, err := ReadLedger(ctx, cfg.Registry)
	if err != nil {
		return nil, err
	}
	text, err := known.Encode()
	if err != nil {
		return nil, err
	}
	if m.Ledger, err = cfg.Store.Put(ctx, text); err != nil {
		return nil, err
	}
	if err := m.follows(base); err != nil {
		return nil, err
	}
	m.Ended = time.Now().UTC()
	_ = m.Objects(func(_ string, o Object) error { m.Bytes += o.Size; return nil })
	m.NewBytes = cfg.Store.Added
	return m, cfg.Store.Commit(ctx, m)
}

// maxTries bounds how often the streams are copied again because one was purged meanwhile, by a janitor that does not wait for a copy.
const maxTries = 3

// copies copies tables and streams, in their order. The streams are copied again where one was purged meanwhile.
func (c *Config) copies(ctx context.Context, js jetstream.JetStream, m, base *Manifest) error {
	if err := c.groups(ctx, m, base); err != nil {
		return err
	}
	for try := 1; ; try++ {
		m.Streams = nil
		if err := c.streams(ctx, js, m, base); err == nil || !errors.Is(err, errNoCheckpoint) || try == maxTries {
			return err
		}
	}
}

// groups copies the tables, in their order.
func (c *Config) groups(ctx context.Context, m, base *Manifest) error {
	all, err := c.DB.All(ctx)
	if err != nil {
		return err
	}
	sizes, err := c.DB.Sizes(ctx)
	if err != nil {
		return err
	}
	for _, name := range groups {
		g := Group{Name: name}
		var holds int64
		for _, s := range sizes {
			if groupOf(s.Table) == name {
				holds += int64(s.Disk)
			}
		}
		var names []string
		for _, t := range all {
			if groupOf(t.Name) == name {
				names = append(names, t.Name)
				g.Tables = append(g.Tables, Table(t))
			}
		}
		if len(names) == 0 {
			continue
		}
		before, err := c.baseOf(ctx, base, name)
		if err != nil {
			return err
		}
		free, err := freeIn(c.Files)
		if err != nil {
			return err
		}
		if err := space(c.Files, name, holds, before.bytes(), free); err != nil {
			return err
		}
		if g.Files, err = c.group(ctx, name, names, before); err != nil {
			return err
		}
		m.Groups = append(m.Groups, g)
	}
	return nil
}

// basis is a group of the backup before.
type basis struct {
	text  []byte
	meta  *metadata
	files map[string]Object
}

// bytes is how large it is.
func (b *basis) bytes() (n int64) {
	if b != nil {
		for _, o := range b.files {
			n += o.Size
		}
	}
	return n
}

// baseOf reads a group of the backup before, nil where it cannot be built upon: then all is copied.
func (c *Config) baseOf(ctx context.Context, m *Manifest, name string) (*basis, error) {
	if m == nil || m.Database != c.DB.Database {
		return nil, nil
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		if g.Name != name {
			continue
		}
		b := &basis{files: map[string]Object{}}
		for _, f := range g.Files {
			if !c.Store.has(f.Object) {
				return nil, nil
			}
			b.files[f.Path] = f.Object
		}
		var err error
		if b.text, err = c.Store.Read(ctx, b.files[metadataName]); errors.Is(err, ErrDamaged) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		b.meta, err = readMetadata(b.text)
		return b, err
	}
	return nil, nil
}

// folder is where ClickHouse puts the files of a group, below Files.
func folder(group string) string { return folderPrefix + group }

const folderPrefix = "almanac-"

// ours are the folders that copies and restores make there, and no other.
func ours() (names []string) {
	for _, g := range groups {
		names = append(names, folder(g), before(g))
	}
	return append(names, folder(stageName))
}

// before is where the backup before has a group.
func before(group string) string { return folder(group) + "-before" }

// group copies the tables of one.
func (c *Config) group(ctx context.Context, name string, names []string, base *basis) ([]File, error) {
	to, from := folder(name), ""
	if base != nil {
		from = before(name)
		if err := writeShared(filepath.Join(c.Files, from, metadataName), base.text); err != nil {
			return nil, err
		}
	}
	err := c.DB.BackUp(ctx, names, to, from, func(p tables.CopyProgress) { c.tell("tables "+name, int64(p.Bytes)) })
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Files, to)
	text, err := os.ReadFile(filepath.Join(dir, metadataName))
	if err != nil {
		return nil, fmt.Errorf("backup: ClickHouse wrote its files, and this process does not find them: %w", err)
	}
	var before *metadata
	if base != nil {
		before = base.meta
	}
	alone, taken, err := whole(text, before)
	if err != nil {
		return nil, err
	}
	o, err := c.Store.Put(ctx, alone)
	if err != nil {
		return nil, err
	}
	files := []File{{metadataName, o}}
	for path, stood := range taken {
		o, ok := base.files[stood]
		if !ok {
			return nil, fmt.Errorf("%w: the backup before does not have %s", ErrDamaged, stood)
		}
		files = append(files, File{path, o})
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == metadataName {
			return err
		}
		o, err := c.Store.PutFile(ctx, path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, File{filepath.ToSlash(rel), o})
		return errors.Join(err, os.Remove(path)) //nolint:gosec // so that it is on the disk twice for a moment alone; the folder is ours
	})
	if err != nil {
		return nil, fmt.Errorf("backup: taking the files of ClickHouse: %w", err)
	}
	return files, sweepFiles(c.Files)
}

// useFiles takes the folder where ClickHouse keeps its backups, and clears what a killed process left there.
func useFiles(dir string, of *Store) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if d, ok := of.place.(Directory); ok && within(string(d), dir) {
		return nil, fmt.Errorf("backup: %s is where ClickHouse keeps its own backups, whose folders are removed: nothing was changed; name a directory for backups that is not in it", dir)
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if err := sweepFiles(dir); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = sweepFiles(dir)
		_ = lock.Close()
	}, nil
}

// within reports whether a path is in a directory, or is the directory, by whatever names they are called.
func within(path, dir string) bool {
	d, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if path, err = filepath.EvalSymlinks(path); err == nil {
		path, err = filepath.Abs(path)
	}
	for ; err == nil; path = filepath.Dir(path) {
		p, err := os.Stat(path)
		if err != nil || os.SameFile(p, d) {
			return err == nil
		}
		if path == filepath.Dir(path) {
			return false
		}
	}
	return false
}

// sweepFiles removes our folders among ClickHouse's backups.
func sweepFiles(dir string) error {
	for _, name := range ours() {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("backup: %w", err)
		}
	}
	return nil
}

// writeShared writes a file that ClickHouse is to read, which may be another user.
func writeShared(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // ClickHouse may be another user
		return fmt.Errorf("backup: %w", err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil { //nolint:gosec // as above
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// withConfig changes numbers of a stream's configuration.
func withConfig(config json.RawMessage, change func(map[string]any)) (json.RawMessage, error) {
	d := json.NewDecoder(strings.NewReader(string(config)))
	d.UseNumber()
	var c map[string]any
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("backup: configuration of a stream: %w", err)
	}
	change(c)
	return json.Marshal(c)
}
