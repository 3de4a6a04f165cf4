package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/doctor"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
)

func ExampleRun() {
	away := errors.New("connection refused")
	for _, f := range doctor.Run(context.Background(), doctor.Config{
		OpenNATS:   func(context.Context, time.Duration) (*nats.Conn, *registry.Registry, error) { return nil, nil, away },
		OpenTables: func() (*tables.DB, error) { return nil, away },
	}) {
		fmt.Println(f.Check, f.Status)
	}
	// Output:
	// NATS fail
	// ClickHouse fail
	// producers fail
}
