package backup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// A server of NATS ends a snapshot or a restore that waits 5 s for the other side. So where the place is far, the chunks of a
// stream lie in a directory of this machine meanwhile: stage.

const stageName = "chunks"

// stage keeps chunks for a store.
type stage struct {
	of, near *Store
	dir      string
}

// openStage opens one in a directory that is removed at its end. A place that is near needs none.
func openStage(ctx context.Context, of *Store, files string) (*stage, error) {
	if !of.place.far() {
		return &stage{of: of, near: of}, nil
	}
	s := &stage{of: of, dir: filepath.Join(files, folder(stageName))}
	var err error
	if err = os.RemoveAll(s.dir); err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	s.near, err = OpenStore(ctx, Directory(s.dir))
	return s, err
}

// put keeps a chunk that the store is to have.
func (s *stage) put(ctx context.Context, chunk []byte) (Object, error) {
	if o := (Object{SHA256: digest(chunk), Size: int64(len(chunk))}); s.of.has(o) {
		return o, nil
	}
	return s.near.Put(ctx, chunk)
}

// send gives the store what it is to have.
func (s *stage) send(ctx context.Context) error {
	if s.near == s.of {
		return nil
	}
	for sum, size := range s.near.there {
		if _, err := s.of.PutFile(ctx, s.near.At(Object{sum, size}.name())); err != nil {
			return err
		}
	}
	return nil
}

// fetch brings the files of a stream.
func (s *stage) fetch(ctx context.Context, of *Stream) error {
	if s.near == s.of {
		return nil
	}
	return of.each(func(_ string, o Object) error {
		chunk, err := s.of.Read(ctx, o)
		if err == nil {
			_, err = s.near.Put(ctx, chunk)
		}
		return err
	})
}

func (s *stage) close(ctx context.Context) {
	if s.near != nil && s.near != s.of {
		_ = s.near.Close(ctx)
		_ = os.RemoveAll(s.dir)
	}
}
