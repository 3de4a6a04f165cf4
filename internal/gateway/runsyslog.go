package gateway

import (
	"context"

	"github.com/almanac-events/almanac/internal/gateway/syslog"
)

// runSyslog runs the syslog listeners once there is a pool. The function it returns
// ends them: what they have read is taken before the pool refuses.
func (g *Gateway) runSyslog(ctx context.Context, failed chan<- error) (stop func()) {
	l := g.cfg.Syslog
	if len(l.Streams)+len(l.Packets) == 0 {
		return func() {}
	}
	reading, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-g.opened:
		case <-reading.Done():
		}
		in := syslog.New(syslog.Config{
			Pool: g.parts.Pool, Topic: g.cfg.SyslogTopic, Location: g.cfg.SyslogZone, OnError: g.cfg.OnSyslog, OnLimit: g.cfg.OnLimit,
		})
		if err := in.Run(reading, l, g.cfg.Grace/2); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
