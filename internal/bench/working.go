package bench

import (
	"context"

	"github.com/almanac-events/almanac/schemas"
)

// working is a cluster whose topics are declared and whose router and sinks run.
type working struct {
	*parts
	environment *Environment
	cfg         Config
	topics      []schemas.Topic
}

// work starts a cluster of its own with what the config needs.
func (s *Suite) work(ctx context.Context, cfg Config) (*working, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	w := &working{environment: h, cfg: s.config(h, cfg)}
	if w.topics, err = declare(ctx, &w.cfg); err == nil {
		w.parts, err = startParts(ctx, &w.cfg)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return w, nil
}

// loaded runs the config's events once, and says how long it took until the last row,
// in seconds.
func (w *working) loaded() (stored float64, err error) {
	_, stored, err = load(w.ctx, &w.cfg, w.topics)
	return stored, w.failed(err)
}

// end stops the parts and closes the cluster.
func (w *working) end() {
	w.stop()
	w.environment.Close()
}
