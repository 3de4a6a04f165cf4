package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
)

// collectorConfig batches as the exporter's README advises, with its queue in
// memory, its default.
const collectorConfig = `
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:%d
processors:
  batch:
    timeout: 1s
    send_batch_size: 100000
exporters:
  clickhouse:
    endpoint: tcp://%s?dial_timeout=10s
    database: otel
    username: %s
    password: %s
    create_schema: true
    async_insert: false
    timeout: 60s
    sending_queue:
      num_consumers: 2
      queue_size: 1000
    retry_on_failure:
      enabled: true
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    logs:
      receivers: [otlp]
      processors: [batch]
      exporters: [clickhouse]
`

func collector() *contestant {
	return &contestant{
		Name:       "OpenTelemetry Collector 0.161, OTLP/HTTP → its ClickHouse exporter",
		Durability: "none: acknowledged when it is in the Collector's memory, lost with its process; twice when an insert is retried",
		run: func(ctx context.Context, c *contest) (took time.Duration, err error) {
			url, stop, err := c.startCollector(ctx)
			if err != nil {
				return 0, err
			}
			defer stop()
			began := time.Now()
			g, gctx := errgroup.WithContext(ctx)
			for n := range c.senders {
				g.Go(func() error { return sendLogs(gctx, url, c, uint64(n+1)) })
			}
			if err := g.Wait(); err != nil {
				return 0, err
			}
			err = c.waitRows(ctx, "otel.otel_logs", uint64(c.events/c.senders*c.senders))
			return time.Since(began), err
		},
	}
}

func (c *contest) startCollector(ctx context.Context) (url string, stop func(), err error) {
	for _, ddl := range []string{"CREATE DATABASE IF NOT EXISTS otel", "DROP TABLE IF EXISTS otel.otel_logs SYNC"} {
		if err := c.db.Exec(ctx, ddl); err != nil {
			return "", nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	path := filepath.Join(c.dir, "otelcol.yaml")
	a := c.addresses
	if err := os.WriteFile(path, fmt.Appendf(nil, collectorConfig, port, a.ClickHouseTCP, a.User, a.Password), 0o600); err != nil {
		return "", nil, err
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, c.otelcol, "--config", path)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		c.ended += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	url = fmt.Sprintf("http://127.0.0.1:%d/v1/logs", port)
	for deadline := time.Now().Add(30 * time.Second); ; {
		if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = conn.Close()
			return url, stop, nil
		}
		select {
		case err := <-ended:
			return "", nil, fmt.Errorf("the Collector ended: %w: %s", err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, errors.New("the Collector did not listen within 30 s")
		}
	}
}

// requestRecords is how many records one request carries: an SDK's usual 512 to
// 2,048; the most is the best for the Collector.
const requestRecords = 2000

func sendLogs(ctx context.Context, url string, c *contest, seed uint64) error {
	var logs plog.Logs
	var records plog.LogRecordSlice
	fresh := func() {
		logs = plog.NewLogs()
		r := logs.ResourceLogs().AppendEmpty()
		r.Resource().Attributes().PutStr("service.name", "bench")
		records = r.ScopeLogs().AppendEmpty().LogRecords()
	}
	fresh()
	for e := range c.share(seed) {
		fillRecord(records.AppendEmpty(), &e)
		if records.Len() == requestRecords {
			if err := post(ctx, url, logs); err != nil {
				return err
			}
			fresh()
		}
	}
	if records.Len() == 0 {
		return nil
	}
	return post(ctx, url, logs)
}

func fillRecord(r plog.LogRecord, e *schemas.Event) {
	r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	r.SetSeverityText(e.Level)
	r.Body().SetStr(e.Message)
	a := r.Attributes()
	a.PutStr("type", e.Type)
	a.PutStr("user_id", e.UserID)
	for _, x := range e.Attrs {
		a.PutStr(x.Key, x.Text())
	}
}

func post(ctx context.Context, url string, logs plog.Logs) error {
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	if err != nil {
		return err
	}
	for { // a full queue is answered 503, and sent again
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-protobuf")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return nil
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(50 * time.Millisecond):
			}
		default:
			return fmt.Errorf("the Collector answered %s: %s", resp.Status, text)
		}
	}
}
