package registry

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// LaneCopy is what is to be kept of a lane's checkpoint.
type LaneCopy struct {
	Topic, Lane string
	Checkpoint  checkpoint.Checkpoint
}

// maxCopies bounds the entries of one commit.
const maxCopies = 200

// SaveCopies keeps copies of checkpoints, over whatever is there: a router that lost its
// lane and writes late leaves an older one, which tells less and nothing wrong.
func (r *Registry) SaveCopies(ctx context.Context, copies []LaneCopy) error {
	changes := make([]*change, len(copies))
	for i := range copies {
		changes[i] = &change{key: schemas.CopyKey(copies[i].Topic, copies[i].Lane), any: true, v: &copies[i].Checkpoint}
	}
	return r.commitAll(ctx, changes)
}

// Copy is the copy of a lane's checkpoint; the zero Checkpoint when there is none that
// can be read.
func (r *Registry) Copy(ctx context.Context, topic, lane string) (checkpoint.Checkpoint, error) {
	var cp checkpoint.Checkpoint
	_, err := r.get(ctx, schemas.CopyKey(topic, lane), &cp)
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnreadable) {
		return checkpoint.Checkpoint{}, nil
	}
	return cp, err
}

// Copies are the copies of a topic's checkpoints, by lane token.
func (r *Registry) Copies(ctx context.Context, topic string) (map[string]checkpoint.Checkpoint, error) {
	out := map[string]checkpoint.Checkpoint{}
	err := r.scan(ctx, schemas.CopyKeys(topic), func(key string, _ uint64, value []byte) error {
		var cp checkpoint.Checkpoint
		if json.Unmarshal(value, &cp) == nil {
			out[key[strings.LastIndexByte(key, '.')+1:]] = cp
		}
		return nil
	})
	return out, err
}
