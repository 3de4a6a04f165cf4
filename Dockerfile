# The almanac binary, for the parts of a production setup: router, sink, timers,
# gateway, and the verbs. It holds no ClickHouse and no NATS: those are servers of their own.
FROM node:20-bookworm-slim AS page
WORKDIR /src/web
COPY internal/gateway/console/web/package.json internal/gateway/console/web/package-lock.json internal/gateway/console/web/.npmrc ./
RUN npm ci
COPY internal/gateway/console/web ./
RUN npm run build

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=page /src/dist internal/gateway/console/dist
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /almanac ./cmd/almanac

FROM debian:bookworm-slim
# docker-compose.yml makes its certificate with openssl; https:// and tls:// of elsewhere are trusted by the system's certificates.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates openssl && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/almanac almanac
COPY --from=build /almanac /usr/local/bin/almanac
USER almanac
ENV ALMANAC_DATA=/var/lib/almanac
ENTRYPOINT ["almanac"]
CMD ["--help"]
