package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// RestoreConfig is where a backup is put. All but Only, Progress and Step are required.
type RestoreConfig struct {
	NC *nats.Conn
	// DB is of the target, and not meant for an engine yet.
	DB    *tables.DB
	Store *Store
	// Files is where ClickHouse keeps its own backups, as this process sees it.
	Files string
	// Limits bound the streams where the backup's bounds are larger, and say how many copies there are.
	Limits schemas.StreamLimits
	// Only are the topics that are restored. Default: all.
	Only     Only
	Progress func(Progress)
	// Step is told of each step that was done, for tests that end the process there.
	Step func(string)
}

// What Step is told; of a stream its name follows.
const (
	StepBegun  = "begun" // in NATS
	StepMarked = "marked"
	StepTables = "tables"
	StepStream = "stream "
)

func (c *RestoreConfig) step(name string) {
	if c.Step != nil {
		c.Step(name)
	}
}

func (c *RestoreConfig) tell(what string, bytes int64) {
	if c.Progress != nil {
		c.Progress(Progress{what, bytes})
	}
}

// Restore puts a backup into empty servers: tables, then streams, the registry last. It leaves its marks, which the caller
// takes away (tables.DB.UnmarkRestore, and then registry.EndRestore) once nothing is left to do. Until then no part starts on the
// servers. Where the marks are there already, it goes on: a stream is left as it is, which must be whole, and tables are made
// again until the registry is there.
//
// The backup's files must have been compared with their digests (Store.Check).
func Restore(ctx context.Context, cfg RestoreConfig, m *Manifest) error {
	return cfg.Store.removed(ctx, m, cfg.restore(ctx, m), removeRestored)
}

func (c *RestoreConfig) restore(ctx context.Context, m *Manifest) error {
	js, err := jetstream.New(c.NC)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	t, err := c.look(ctx, js, m)
	if err != nil {
		return err
	}
	whole, err := t.admits(m.Name())
	if err != nil {
		return err
	}
	if whole {
		return c.finished(ctx, js, m)
	}
	only, err := c.Only.selects(ctx, c.Store, m)
	if err != nil {
		return err
	}
	release, err := useFiles(c.Files, c.Store)
	if err != nil {
		return err
	}
	defer release()
	if !t.begun {
		free, err := freeIn(c.Files)
		if err == nil {
			err = fits(c.Files, m, c.Only, free)
		}
		if err != nil {
			return err
		}
		if err := registry.BeginRestore(ctx, js, m.Name(), c.Limits.Replicas); err != nil {
			return err
		}
	}
	c.step(StepBegun)
	if err := c.DB.MarkRestore(ctx, m.Name()); err != nil {
		return err
	}
	c.step(StepMarked)
	for _, h := range t.tables {
		if err := c.DB.DropForRestore(ctx, h.Name); err != nil {
			return err
		}
	}
	if err := c.tables(ctx, m); err != nil {
		return err
	}
	c.step(StepTables)
	for i := range m.Streams {
		if s := &m.Streams[i]; s.Name != schemas.KVStream {
			if err := c.stream(ctx, js, s, &only, m.Name()); err != nil {
				return err
			}
			c.step(StepStream + s.Name)
		}
	}
	for i := range m.Streams {
		if s := &m.Streams[i]; s.Name == schemas.KVStream {
			err := c.stream(ctx, js, s, &only, m.Name())
			c.step(StepStream + s.Name)
			return err
		}
	}
	return fmt.Errorf("%w: it does not have the registry", ErrTorn)
}

// finished checks that the registry, which comes last, is whole. What was done since wrote into it.
func (c *RestoreConfig) finished(ctx context.Context, js jetstream.JetStream, m *Manifest) error {
	info, err := streams.Info(ctx, js, schemas.KVStream)
	if err != nil {
		return err
	}
	for i := range m.Streams {
		if s := &m.Streams[i]; s.Name == schemas.KVStream && info.State.LastSeq < s.Last {
			return halfRestored(s, &info.State)
		}
	}
	return nil
}

func (c *RestoreConfig) tables(ctx context.Context, m *Manifest) error {
	if err := c.DB.MakeDatabase(ctx); err != nil {
		return err
	}
	storage, err := c.DB.Storage(ctx)
	if err != nil {
		return err
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		of := c.Only.tables(g)
		if len(of) == 0 {
			continue
		}
		var done int64
		for _, f := range g.Files {
			if err := c.lay(ctx, filepath.Join(c.Files, folder(g.Name)), f); err != nil {
				return err
			}
			done += f.Size
			c.tell("files of "+g.Name, done)
		}
		for known, names := range byPolicy(of, storage.Knows) {
			err := c.DB.Restore(ctx, m.Database, names, folder(g.Name), !known, func(p tables.CopyProgress) { c.tell("tables "+g.Name, int64(p.Bytes)) })
			if err != nil {
				return err
			}
		}
		if err := sweepFiles(c.Files); err != nil {
			return err
		}
	}
	return nil
}

// lay puts a file where ClickHouse reads it.
func (c *RestoreConfig) lay(ctx context.Context, dir string, f File) error {
	path := filepath.Join(dir, f.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // ClickHouse may be another user
		return fmt.Errorf("backup: %w", err)
	}
	w, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return errors.Join(c.Store.Copy(ctx, w, f.Object), w.Close())
}

func (c *RestoreConfig) stream(ctx context.Context, js jetstream.JetStream, s *Stream, only *selection, of string) error {
	info, err := streams.Info(ctx, js, s.Name)
	if err == nil { // of a restore that was killed
		return halfRestored(s, &info.State)
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	config, most, err := c.adapted(s, of)
	if err != nil {
		return err
	}
	staged, err := openStage(ctx, c.Store, c.Files)
	if err != nil {
		return err
	}
	defer staged.close(ctx)
	if err := staged.fetch(ctx, s); err != nil {
		return err
	}
	part, err := only.of(*s, func(each func(*message) error) error { return staged.near.messages(ctx, s, each) })
	if err != nil {
		return err
	}
	var done int64
	err = restoreStream(ctx, c.NC, &part, config, func(each func(*message) error) error {
		return staged.near.messages(ctx, s, func(m *message) error {
			if !only.keeps(s.Name, m.subject) {
				return nil
			}
			done += int64(len(m.header) + len(m.data))
			c.tell("stream "+s.Name, done)
			return each(m)
		})
	})
	if err != nil {
		return streams.TooSmall("stream "+s.Name, most, err)
	}
	if info, err = streams.Info(ctx, js, s.Name); err != nil {
		return err
	}
	return halfRestored(s, &info.State)
}

// halfRestored refuses a stream that is not whole: the server was told of no end.
func halfRestored(s *Stream, is *jetstream.StreamState) error {
	if is.LastSeq == s.Last {
		return nil
	}
	return fmt.Errorf("backup: the stream %s ends at %d, and that of the backup at %d: a restore was cut off there. Remove what JetStream keeps on those servers, drop the databases of Almanac in that ClickHouse, and restore again",
		s.Name, is.LastSeq, s.Last)
}

// adapted is the configuration of a stream for the target, and its bound: no larger than the target's, unless the stream is.
func (c *RestoreConfig) adapted(s *Stream, of string) (config json.RawMessage, most int64, err error) {
	limit := c.Limits.RegistryBytes
	for _, cfg := range schemas.Streams(c.Limits) {
		if cfg.Name == s.Name {
			limit = cfg.MaxBytes
		}
	}
	var had struct {
		MaxBytes int64 `json:"max_bytes"`
	}
	if err := json.Unmarshal(s.Config, &had); err != nil {
		return nil, 0, fmt.Errorf("backup: configuration of the stream %s: %w", s.Name, err)
	}
	if most = had.MaxBytes; most <= 0 || most > limit {
		most = max(limit, 2*s.bytes()) // as files they are compressed
	}
	config, err = withConfig(s.Config, func(cfg map[string]any) {
		cfg["num_replicas"], cfg["max_bytes"] = max(c.Limits.Replicas, 1), most
		if s.Name == schemas.KVStream {
			cfg["metadata"] = restoringMetadata(cfg["metadata"], of)
		}
	})
	return config, most, err
}

// restoringMetadata are those of the registry's bucket until the restore of a backup has ended.
func restoringMetadata(had any, of string) map[string]string {
	metadata := map[string]string{}
	if had, ok := had.(map[string]any); ok {
		for key, v := range had {
			metadata[key] = fmt.Sprint(v)
		}
	}
	schemas.MarkRestoring(metadata, of)
	return metadata
}
