package producer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// The tests of an application need no servers.
func ExampleNewMemory() {
	ctx := context.Background()
	servers := producer.NewMemory(schemas.NewTopic("app"))
	p, err := servers.Producer(producer.Config{Topic: "app", Service: "api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	slog.New(p.SlogHandler()).Info("started", "port", 8080) // the code under test
	if err := p.Close(ctx); err != nil {
		fmt.Println(err)
	}
	for _, e := range servers.Events() {
		fmt.Println(e.Service, e.Level, e.Message, e.Attrs[0].Key, e.Attrs[0].Text())
	}
	// Output:
	// api info started port 8080
}

// While the servers are away, Log keeps what its buffer holds and counts the rest.
func ExampleProducer_Log() {
	ctx := context.Background()
	servers := producer.NewMemory(schemas.NewTopic("app"))
	servers.SetAway(true)
	p, err := servers.Producer(producer.Config{Topic: "app", BufferEvents: 2, Stderr: io.Discard})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		p.Log(producer.Event{Message: fmt.Sprint(i)})
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	fmt.Println("flushed:", p.Flush(ended) == nil)
	servers.SetAway(false)
	fmt.Println("flushed:", p.Flush(ctx) == nil)
	for _, e := range servers.Events()[:2] {
		fmt.Println(e.Message)
	}
	_ = p.Close(ctx)
	// Output:
	// flushed: false
	// flushed: true
	// 0
	// 1
}

// Policies are read from a configuration by their names.
func ExampleParsePolicy() {
	policy, err := producer.ParsePolicy("drop_oldest")
	fmt.Println(policy, err)
	_, err = producer.ParsePolicy("drop")
	fmt.Println(err != nil)
	// Output:
	// drop_oldest <nil>
	// true
}
