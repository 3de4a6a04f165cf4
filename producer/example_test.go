package producer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/producer/zerologger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

func Example() {
	natsURL, show := exampleServer("auth")
	ctx := context.Background()

	p, err := producer.Connect(ctx, natsURL, producer.Config{Topic: "auth", Service: "api"})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Log(producer.Event{
		Level: "info", Type: "login", UserID: "u-7", Message: "logged in",
		Attrs: []producer.Attr{producer.String("ip", "10.0.0.1"), producer.Int64("attempt", 2)},
	})
	if err := p.Close(ctx); err != nil { // flushes
		fmt.Println(err)
	}
	show()
	// Output:
	// info api login u-7 "logged in" ip=10.0.0.1 attempt=2
}

func ExampleProducer_Publish() {
	natsURL, show := exampleServer("auth")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	p, err := producer.Connect(ctx, natsURL, producer.Config{Topic: "auth"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close(ctx)

	err = p.Publish(ctx, producer.Event{Type: "password_changed", UserID: "u-7"})
	fmt.Println("stored:", err == nil)
	show()
	// Output:
	// stored: true
	// password_changed u-7 ""
}

func ExampleProducer_SlogHandler() {
	natsURL, show := exampleServer("app")
	ctx := context.Background()
	p, err := producer.Connect(ctx, natsURL, producer.Config{Topic: "app"})
	if err != nil {
		fmt.Println(err)
		return
	}

	log := slog.New(p.SlogHandler()).With("user_id", "u-7")
	log.WithGroup("request").Warn("slow", "method", "GET", "took", 1500*time.Millisecond)
	p.Close(ctx)
	show()
	// Output:
	// warn u-7 "slow" request.method=GET request.took=1500000000
}

func Example_zerolog() {
	natsURL, show := exampleServer("app")
	ctx := context.Background()
	p, err := producer.Connect(ctx, natsURL, producer.Config{Topic: "app"})
	if err != nil {
		fmt.Println(err)
		return
	}

	log := zerolog.New(zerologger.New(p)).With().Timestamp().Logger()
	log.Error().Str("user_id", "u-7").Err(os.ErrPermission).Msg("upload failed")
	p.Close(ctx)
	show()
	// Output:
	// error u-7 "upload failed" error=permission denied
}

// exampleServer starts a NATS server with the EVENTS stream and a declared topic,
// as `almanac up` does. show prints the stored events and stops it.
func exampleServer(name string) (url string, show func()) {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "producer-example-")
	check(err)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, JetStream: true, StoreDir: dir})
	check(err)
	srv.Start()
	if !srv.ReadyForConnections(20 * time.Second) {
		panic("the NATS server did not get ready")
	}
	nc, err := nats.Connect(srv.ClientURL())
	check(err)
	js, err := jetstream.New(nc)
	check(err)
	ctx := context.Background()
	limits := schemas.StreamLimits{EventsBytes: 1 << 20, Replicas: 1}
	_, err = js.CreateStream(ctx, schemas.EventsStream(limits))
	check(err)
	bucket := schemas.RegistryBucket(limits)
	bucket.MaxBytes = 1 << 20
	kv, err := js.CreateKeyValue(ctx, bucket)
	check(err)
	topic := schemas.NewTopic(name)
	text, err := json.Marshal(topic)
	check(err)
	_, err = kv.Put(ctx, schemas.TopicKey(name), text)
	check(err)

	return srv.ClientURL(), func() {
		defer os.RemoveAll(dir)
		defer srv.WaitForShutdown()
		defer srv.Shutdown()
		defer nc.Close()
		stream, err := js.Stream(ctx, schemas.StreamEvents)
		check(err)
		var r frame.Reader
		for seq := range stream.CachedInfo().State.LastSeq {
			m, err := stream.GetMsg(ctx, seq+1)
			check(err)
			check(r.Open(m.Data, &topic, 1))
			for i := range r.Rows() {
				ev := r.Event(i)
				for _, s := range []string{ev.Level, ev.Service, ev.Type, ev.UserID} {
					if s != "" {
						fmt.Print(s, " ")
					}
				}
				fmt.Printf("%q", ev.Message)
				for _, a := range ev.Attrs {
					fmt.Printf(" %s=%s", a.Key, a.Text())
				}
				fmt.Println()
			}
		}
	}
}
