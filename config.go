package almanac

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
)

// Config says where Almanac runs. Only NATS is required.
type Config struct {
	// NATS are the URLs of the servers, separated by commas.
	NATS string

	// ClickHouse is the address of its HTTP interface, http://user:password@host:8123/database.
	// Without one there are no reads but those of documents and timers that are not archived.
	ClickHouse string

	// Service names the program: in its events (Event.Service), in versions of documents (Document.By)
	// and at the NATS server. Default: none.
	Service string

	// Producer is how producers buffer and drop. Topic must be empty; Service, NATS and Hooks.OnError are by
	// default those of this Config.
	Producer producer.Config

	// Options are further options of every connection to NATS: credentials, TLS. They come after Almanac's own
	// and so win over them.
	Options []nats.Option

	// OnError hears trouble that the Client works around, such as a lost connection. It may be called by
	// several goroutines at once, and must not wait.
	OnError func(error)
}

func (c *Config) check() error {
	switch {
	case c.NATS == "":
		return fmt.Errorf("%w: NATS is empty, it must be a URL such as nats://127.0.0.1:4222", ErrConfig)
	case c.Producer.Topic != "":
		return fmt.Errorf("%w: Producer.Topic is %q, it must be empty: Producer is given the topic", ErrConfig, c.Producer.Topic)
	}
	return nil
}

// producer is the configuration of a topic's producer.
func (c *Config) producer(topic string) producer.Config {
	p := c.Producer
	p.Topic = topic
	if p.Service == "" {
		p.Service = c.Service
	}
	if p.Hooks.OnError == nil {
		p.Hooks.OnError = c.OnError
	}
	p.NATS = append(append([]nats.Option{}, c.Options...), p.NATS...)
	return p
}

// options are those of the Client's own connections.
func (c *Config) options() []nats.Option {
	told := func(err error) {
		if c.OnError != nil && err != nil { // nil: Close
			c.OnError(fmt.Errorf("nats: %w", err))
		}
	}
	name := c.Service
	if name == "" {
		name = "client"
	}
	return append(append(streams.Lasting(name),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { told(err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { told(err) }),
	), c.Options...)
}
