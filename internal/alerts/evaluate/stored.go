package evaluate

import "context"

// readStored calls f, which asks ClickHouse. A server that does not answer ends it within seconds, and other topics of the round do
// not wait for it again: those that need no ClickHouse would be evaluated late.
func (e *Evaluator) readStored(ctx context.Context, f func(ctx context.Context) error) error {
	if away := e.away.Load(); away != nil {
		return *away
	}
	asked, cancel := e.cfg.Reader.WhileStored(ctx)
	defer cancel()
	err := f(asked)
	if why := context.Cause(asked); err != nil && why != nil && ctx.Err() == nil {
		e.away.Store(&why)
		return why
	}
	return err
}
