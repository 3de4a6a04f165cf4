// Package almanac is the front door for Go programs. Open connects to a running Almanac, and
// its Client gives what a program logs, stores, schedules and reads with.
//
//	a, err := almanac.Open(ctx, almanac.Config{NATS: "nats://127.0.0.1:4222", ClickHouse: dsn, Service: "shop"})
//	defer a.Close(ctx)
//	p, err := a.Producer(ctx, "app")           // p.Log(event), p.Publish(ctx, event)
//	docs, err := a.Documents(ctx, "customers") // docs.Put, docs.Load, docs.List
//	mails, err := a.Timers(ctx, "mails")       // mails.Create, mails.Update, mails.Delete
//	r, err := a.Query(ctx)                     // r.Query, r.Tail, r.SQL
//
// # Model
//
// A Client has one connection to NATS for documents, timers and reads, and one for each topic
// that it logs to. What it gives is opened when it is first asked for.
// Producers and the reader are made once and shared. All of it is safe for concurrent use.
//
// ClickHouse is optional. Without it a program can log, write documents and timers, and load those
// that are not archived. Lists of documents, and all other reads, are ErrNoClickHouse or documents.ErrArchive.
//
// A program that only logs should import package producer, which links neither a database nor a
// query language.
//
// # Who is authoritative
//
// This package only wires: each part behaves as its own package says.
//
// # Failures
//
// Open fails when NATS does not answer, or has no Almanac (ErrNoAlmanac). ClickHouse is first asked by
// the first read, so a program starts and logs while ClickHouse is away. After Open every connection comes back by
// itself. Close flushes the producers until its context ends, and everything after it is ErrClosed.
// The errors of errors.go are those of the parts which programs match by errors.Is.
package almanac
