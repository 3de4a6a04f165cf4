package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves the health of a process that has no gateway, on a listener of its own.
type Server struct {
	Listener net.Listener
	Health   *Health
	// Guard wraps what is served in the checks of who asks.
	Guard func(http.Handler) http.Handler
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{Handler: s.Guard(s.Health), ReadHeaderTimeout: Wait, ReadTimeout: Wait, WriteTimeout: 2 * Wait}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		s.Health.Drain()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = srv.Shutdown(grace)
	}()
	if err := srv.Serve(s.Listener); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	<-ended
	return nil
}
