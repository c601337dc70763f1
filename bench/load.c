/* The upstream and the clients of bench/gateway.py, in one process and one thread, so that both read the same clock.

   Commands come on the standard input, one per line; answers leave as one JSON object per line:

     script INDEX FILE                 an answer: its events, and how a client sees that an event has come
     load PORT REQUEST SCRIPT ANSWERS CONCURRENCY TEXT ARGUMENTS
                                       ungated: every answer as fast as it goes; TEXT and ARGUMENTS are what must arrive
     gated PORT REQUEST SCRIPT STREAMS LEAD TAIL GAP TEXT ARGUMENTS
                                       opens STREAMS streams that get LEAD events and then wait ("ready");
         go                            the next events come one every GAP microseconds over all streams ("passed");
         end                           the rest comes at once ("done");
         leave                         or the clients close instead, 5 ms apart ("left")

   A client counts the letters and digits in the strings "content" and "arguments", not those behind a backslash: gateways
   may cut and escape these strings anew, and this count stays the same. An event has come once the count that its
   script gives for it is reached. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SCRIPTS = 64, STREAMS = 8192, OPENING = 32, HELD = 2, INPUT = 1 << 16, SKIPPED = 255 };
enum kind { LISTENER, TIMER, COMMANDS, UPSTREAM, CLIENT };
static const char HEAD[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char MARK[] = "stream-id=";

typedef struct { int count; int *end; uint32_t *reached; unsigned char *channel; char *bytes; } Script;

typedef struct {
  enum kind kind;
  int fd, id, writing;
  /* upstream: the request as it comes, what is to be sent still */
  char *request; int got, size;
  int next, allowed; char *rest; int restlen, headed;
  /* client */
  int64_t asked, first; int acked, busy, status;
  int phase, headlen, chunkleft, chunksize, seen;
  char head[4096];
  int lex, isvalue, channel, keylen, significant, hexleft, skip[2]; uint32_t count[2]; char key[16], lastkey[16];
} Peer;

static int epfd, timerfd, listenfd;
static Peer listener = {.kind = LISTENER}, timer = {.kind = TIMER}, commands = {.kind = COMMANDS};
static Script scripts[SCRIPTS];
static Peer *clients[STREAMS], *upstreams[STREAMS];
static int nclients;
static int64_t (*sent)[2048];
static double *ttfbs, *latencies; static int nttfb, nlatency, latencycap;

/* the load that runs */
static Script *script;
static char *request; static int requestlen, idat, port;
static int answers, begun, finished, failed, concurrency, gated, lead, tail, opened, passing, ending, leaving;
static long gap, tick, ticks; static int64_t started, paceat, leftat[STREAMS]; static long events;
static uint32_t want[2]; static int noticed;

static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static void die(const char *why) { fprintf(stderr, "load: %s: %s\n", why, strerror(errno)); exit(1); }
static int smaller(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return (x > y) - (x < y); }
static double quantile(double *v, int n, double q) { return n ? v[(int)(q * (n - 1) + 0.5)] : 0; }

static void watch(Peer *p, int op, unsigned what) {
  struct epoll_event e = {.events = what, .data.ptr = p};
  if (epoll_ctl(epfd, op, p->fd, &e)) die("epoll_ctl");
}

static void arm(int64_t at) {
  struct itimerspec t = {.it_value = {at / 1000000000LL, at % 1000000000LL}};
  timerfd_settime(timerfd, TFD_TIMER_ABSTIME, &t, NULL);
}

static void keep(double **list, int *n, int *cap, double value) {
  if (*n == *cap) *list = realloc(*list, (size_t)(*cap = *cap ? *cap * 2 : 4096) * sizeof(double));
  (*list)[(*n)++] = value;
}

/* ---- upstream ---------------------------------------------------------------------------------------------------- */

static void forget(Peer *p) {
  if (p->id >= 0 && upstreams[p->id] == p) {
    upstreams[p->id] = NULL;
    if (leaving && leftat[p->id]) {
      keep(&latencies, &nlatency, &latencycap, (double)(now() - leftat[p->id]) / 1e3);
      noticed++;
    }
  }
  close(p->fd); free(p->request); free(p->rest); free(p);
}

/* Sends the events up to `to` as one piece: one event, as model servers do. What the socket does not take waits. */
static int emit(Peer *p, int to) {
  int from = p->next ? script->end[p->next - 1] : 0, size = script->end[to - 1] - from, last = to == script->count;
  char frame[16]; int framelen = sprintf(frame, "%x\r\n", size);
  struct iovec parts[4] = {{(void *)HEAD, p->headed ? 0 : sizeof HEAD - 1}, {frame, framelen}, {script->bytes + from, size},
                           {last ? "\r\n0\r\n\r\n" : "\r\n", last ? 7 : 2}};
  ssize_t total = 0, done; int64_t at = now();
  for (int i = p->next; i < to; i++) sent[p->id][i] = at;
  for (int i = 0; i < 4; i++) total += parts[i].iov_len;
  p->headed = 1; p->next = to;
  done = writev(p->fd, parts, 4);
  if (done < 0 && errno != EAGAIN) return 0;
  if (done < 0) done = 0;
  if (done < total) {
    char *all = malloc(total), *at = all;
    for (int i = 0; i < 4; i++) { memcpy(at, parts[i].iov_base, parts[i].iov_len); at += parts[i].iov_len; }
    memmove(all, all + done, total - done);
    p->rest = all; p->restlen = total - done;
  }
  return 1;
}

static void flow(Peer *p) {
  if (p->rest) {
    ssize_t done = write(p->fd, p->rest, p->restlen);
    if (done < 0) { if (errno == EAGAIN) return; forget(p); return; }
    memmove(p->rest, p->rest + done, p->restlen -= done);
    if (p->restlen) return;
    free(p->rest); p->rest = NULL;
  } else if (p->next < p->allowed) {
    if (!emit(p, p->next + 1)) { forget(p); return; }
  }
  int more = p->rest || p->next < p->allowed;
  if (more != p->writing) watch(p, EPOLL_CTL_MOD, EPOLLIN | (more ? EPOLLOUT : 0));
  p->writing = more;
  if (p->next == script->count && !p->rest) { upstreams[p->id] = NULL; p->id = -1; }
}

static void answer(Peer *p) {
  char *at = memmem(p->request, p->got, MARK, sizeof MARK - 1);
  if (!at || !script) { forget(p); return; }
  p->id = atoi(at + sizeof MARK - 1) % STREAMS;
  p->got = 0; p->next = 0; p->headed = 0;
  p->allowed = gated && !ending ? lead : script->count;
  upstreams[p->id] = p;
  flow(p);
}

static void hear(Peer *p) {
  if (p->size - p->got < INPUT) p->request = realloc(p->request, p->size += INPUT * 2);
  ssize_t n = read(p->fd, p->request + p->got, p->size - p->got - 1);
  if (n <= 0) { if (n == 0 || errno != EAGAIN) forget(p); return; }
  p->got += n; p->request[p->got] = 0;
  char *body = strstr(p->request, "\r\n\r\n"), *length = strcasestr(p->request, "content-length:");
  if (!body || !length) return;
  if (p->got >= body + 4 - p->request + atoi(length + 15)) answer(p);
}

static void welcome(void) {
  int fd, yes = 1;
  while ((fd = accept4(listenfd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    Peer *p = calloc(1, sizeof *p);
    p->kind = UPSTREAM; p->fd = fd; p->id = -1;
    watch(p, EPOLL_CTL_ADD, EPOLLIN);
  }
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static void ask(Peer *p) {
  char number[16];
  p->id = begun++ % STREAMS; p->busy = 1; p->first = 0; p->acked = 0; p->phase = p->headlen = p->seen = 0;
  p->lex = p->isvalue = p->keylen = p->significant = 0; p->skip[0] = p->skip[1] = 0; p->count[0] = p->count[1] = 0;
  snprintf(number, sizeof number, "%08d", p->id); memcpy(request + idat, number, 8);
  p->asked = now();
  if (write(p->fd, request, requestlen) != requestlen) die("a request was not taken whole");
}

static Peer *join(void) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int yes = 1; Peer *p = calloc(1, sizeof *p);
  p->kind = CLIENT; p->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(p->fd, (struct sockaddr *)&to, sizeof to)) die("connect");
  setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  fcntl(p->fd, F_SETFL, O_NONBLOCK);
  watch(p, EPOLL_CTL_ADD, EPOLLIN);
  return clients[nclients++] = p;
}

static void part(Peer *p) {
  for (int i = 0; i < nclients; i++) if (clients[i] == p) { clients[i] = clients[--nclients]; break; }
  close(p->fd); free(p);
}

static void count(Peer *p, int c) {
  if (p->channel < 0) return;
  int *skip = &p->skip[p->channel];
  if (*skip) *skip = 0;
  else if (c == '\\') *skip = 1;
  else if (isalnum(c)) p->count[p->channel]++;
}

/* One byte of JSON: outside of strings 0, in a string 1, behind a backslash 2, in the digits of \u 3. */
static void lex(Peer *p, int c) {
  if (p->lex == 0) {
    if (c == '"') {
      p->lex = 1; p->keylen = 0; p->isvalue = p->significant == ':';
      p->channel = !p->isvalue ? -1 : !strcmp(p->lastkey, "content") ? 0 : !strcmp(p->lastkey, "arguments") ? 1 : -1;
    } else if (c != ' ') p->significant = c;
  } else if (p->lex == 1) {
    if (c == '\\') p->lex = 2;
    else if (c == '"') {
      p->lex = 0; p->significant = c;
      if (!p->isvalue) { memcpy(p->lastkey, p->key, p->keylen); p->lastkey[p->keylen] = 0; }
    } else if (p->isvalue) count(p, c);
    else if (p->keylen < 15) p->key[p->keylen++] = c;
  } else if (p->lex == 2) {
    p->lex = c == 'u' ? 3 : 1; p->hexleft = 4;
    count(p, c == '\\' ? '\\' : ' ');
  } else if (!--p->hexleft) p->lex = 1;
}

static void settle(Peer *p, int64_t at) {
  while (p->acked < script->count) {
    int i = p->acked, channel = script->channel[i];
    if (channel != SKIPPED) {
      if (p->count[channel] < script->reached[i]) break;
      if (i >= lead && passing && i < script->count - tail)
        keep(&latencies, &nlatency, &latencycap, (double)(at - sent[p->id][i]) / 1e3);
    }
    p->acked++;
  }
}

static void tell(const char *what) {
  double seconds = (double)(now() - started) / 1e9;
  qsort(ttfbs, nttfb, sizeof(double), smaller); qsort(latencies, nlatency, sizeof(double), smaller);
  printf("{\"state\": \"%s\", \"answers\": %d, \"failed\": %d, \"events\": %ld, \"seconds\": %.6f, \"noticed\": %d, "
         "\"ttfb_p50\": %.1f, \"ttfb_p99\": %.1f, \"latency_p50\": %.1f, \"latency_p99\": %.1f, \"latency_max\": %.1f}\n",
         what, finished, failed, events, seconds, noticed, quantile(ttfbs, nttfb, .5), quantile(ttfbs, nttfb, .99),
         quantile(latencies, nlatency, .5), quantile(latencies, nlatency, .99), quantile(latencies, nlatency, 1));
  fflush(stdout);
}

static void conclude(Peer *p, int broken) {
  static int cap;
  finished++; events += script->count; p->busy = 0;
  if (broken || p->status != 200 || p->count[0] != want[0] || p->count[1] != want[1]) {
    if (!failed++) fprintf(stderr, "load: answer %d: status %d, %u/%u letters of %u/%u, broken %d\n%.600s\n", p->id, p->status,
                           p->count[0], p->count[1], want[0], want[1], broken, p->head);
  }
  else keep(&ttfbs, &nttfb, &cap, (double)(p->first - p->asked) / 1e3);
  if (broken) part(p);
  if (!gated && begun < answers) ask(broken ? join() : p);
  if (finished == answers) { tell("done"); script = NULL; }
}

/* The body without its framing. Phases: head 0, size of a chunk 1, chunk 2, line end behind a chunk 3, end 4. */
static int take(Peer *p, const char *at, const char *end, int64_t when) {
  while (at < end) {
    if (p->phase == 0) {
      if (p->headlen < (int)sizeof p->head - 1) { p->head[p->headlen++] = *at; p->head[p->headlen] = 0; }
      if (*at++ == '\n' && p->headlen > 4 && !memcmp(p->head + p->headlen - 4, "\r\n\r\n", 4)) {
        p->phase = 1; p->chunksize = 0; p->status = atoi(p->head + 9);
        if (p->status != 200 || !strcasestr(p->head, "chunked")) return 2;
      }
    } else if (p->phase == 1) {
      int c = *at++;
      if (c == '\n') { p->phase = p->chunksize ? 2 : 4; p->chunkleft = p->chunksize; }
      else if (isxdigit(c)) p->chunksize = p->chunksize * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    } else if (p->phase == 2) {
      int n = end - at < p->chunkleft ? end - at : p->chunkleft;
      if (!p->first) p->first = when;
      for (int i = 0; i < n; i++) lex(p, (unsigned char)at[i]);
      at += n;
      if (!(p->chunkleft -= n)) p->phase = 3;
    } else if (p->phase == 3) { if (*at++ == '\n') { p->phase = 1; p->chunksize = 0; } }
    else if (*at++ == '\n') return 1;
  }
  return 0;
}

static void receive(Peer *p) {
  static char input[INPUT];
  ssize_t n = read(p->fd, input, sizeof input);
  int64_t at = now();
  if (n < 0 && errno == EAGAIN) return;
  if (n <= 0 || !p->busy) { if (p->busy) conclude(p, 1); else part(p); return; }
  int over = take(p, input, input + n, at);
  settle(p, at);
  if (gated && !p->seen && p->acked >= lead) {
    p->seen = 1;
    if (begun < answers) ask(join());
    if (++opened == answers) tell("ready");
  }
  /* a gateway may hold back the end of what it has until more comes */
  if (gated && passing && p->seen == 1 && p->acked >= script->count - tail - HELD) {
    p->seen = 2; if (++passing == answers + 1) tell("passed");
  }
  if (over) conclude(p, over == 2);
}

/* ---- the loads --------------------------------------------------------------------------------------------------- */

static void prepare(const char *file, int index) {
  FILE *f = fopen(file, "rb"); if (!f) die(file);
  request = realloc(request, 1 << 24); requestlen = fread(request, 1, 1 << 24, f); fclose(f);
  char *mark = memmem(request, requestlen, MARK, sizeof MARK - 1); if (!mark) die("no stream-id in the request");
  idat = mark + sizeof MARK - 1 - request;
  while (nclients) part(clients[0]);
  script = &scripts[index]; nttfb = nlatency = 0; events = 0; gap = 0;
  begun = finished = failed = opened = passing = ending = leaving = noticed = lead = tail = gated = 0;
  memset(leftat, 0, sizeof leftat); started = now();
}

static void learn(int index, const char *file) {
  FILE *f = fopen(file, "rb"); if (!f) die(file);
  Script *s = &scripts[index]; uint32_t n, head[3]; int total = 0;
  if (fread(&n, 4, 1, f) != 1 || n > 2048) die("script");
  s->count = n; s->end = calloc(n, sizeof(int)); s->reached = calloc(n, 4); s->channel = calloc(n, 1);
  for (uint32_t i = 0; i < n; i++) {
    if (fread(head, 4, 3, f) != 3) die("script");
    s->channel[i] = head[1]; s->reached[i] = head[2];
    s->bytes = realloc(s->bytes, total + head[0]);
    if (fread(s->bytes + total, 1, head[0], f) != head[0]) die("script");
    s->end[i] = total += head[0];
  }
  fclose(f);
}

static void pace(void) {
  int64_t at = now();
  for (; tick < ticks && paceat + tick * gap * 1000 <= at; tick++) {
    Peer *p = upstreams[tick % answers];
    if (p && !p->rest) { p->allowed = p->next + 1; if (!emit(p, p->allowed)) forget(p); }
  }
  if (tick < ticks) arm(paceat + tick * gap * 1000);
}

static void leave(void) {
  if (nclients) { leftat[clients[0]->id] = now(); part(clients[0]); arm(now() + 5000000); }
}

static void obey(char *line) {
  char file[4096]; int index;
  if (sscanf(line, "script %d %4095s", &index, file) == 2) learn(index, file);
  else if (!strncmp(line, "load ", 5)) {
    int n, c, text, arguments;
    if (sscanf(line, "load %d %4095s %d %d %d %d %d", &port, file, &index, &n, &c, &text, &arguments) != 7) die("load");
    prepare(file, index); answers = n; concurrency = c; want[0] = text; want[1] = arguments;
    for (int i = 0; i < concurrency && begun < answers; i++) ask(join());
  } else if (!strncmp(line, "gated ", 6)) {
    int n, first, last, text, arguments; long every;
    if (sscanf(line, "gated %d %4095s %d %d %d %d %ld %d %d", &port, file, &index, &n, &first, &last, &every, &text, &arguments) != 9) die("gated");
    prepare(file, index); answers = n; gated = 1; lead = first; tail = last; gap = every; want[0] = text; want[1] = arguments;
    for (int i = 0; i < OPENING && begun < answers; i++) ask(join());
  } else if (!strncmp(line, "go", 2)) {
    passing = 1; tick = 0; ticks = (long)answers * (script->count - lead - tail); paceat = now() + 1000000; arm(paceat);
  } else if (!strncmp(line, "end", 3)) {
    ending = 1; tick = ticks;
    for (int i = 0; i < STREAMS; i++) if (upstreams[i]) { upstreams[i]->allowed = script->count; flow(upstreams[i]); }
  } else if (!strncmp(line, "leave", 5)) { leaving = 1; nlatency = 0; leave(); }
  else if (!strncmp(line, "left", 4)) { tell("left"); script = NULL; leaving = 0; }
}

static void commanded(void) {
  static char line[8192]; static int n;
  char c; ssize_t got;
  while ((got = read(0, &c, 1)) == 1) {
    if (c == '\n') { line[n] = 0; n = 0; obey(line); } else if (n < 8191) line[n++] = c;
  }
  if (got == 0) exit(0);
}

int main(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}; socklen_t size = sizeof at;
  signal(SIGPIPE, SIG_IGN);
  sent = calloc(STREAMS, sizeof *sent); epfd = epoll_create1(0);
  listenfd = listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listenfd, (struct sockaddr *)&at, size) || listen(listenfd, 4096)) die("listen");
  getsockname(listenfd, (struct sockaddr *)&at, &size);
  timerfd = timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  fcntl(0, F_SETFL, O_NONBLOCK); commands.fd = 0;
  watch(&listener, EPOLL_CTL_ADD, EPOLLIN); watch(&timer, EPOLL_CTL_ADD, EPOLLIN); watch(&commands, EPOLL_CTL_ADD, EPOLLIN);
  printf("{\"port\": %d}\n", ntohs(at.sin_port)); fflush(stdout);
  for (;;) {
    struct epoll_event ready; uint64_t expired;
    if (epoll_wait(epfd, &ready, 1, -1) < 1) continue;  /* one at a time: an earlier one may have freed a later one */
    Peer *p = ready.data.ptr;
    if (p->kind == LISTENER) welcome();
    else if (p->kind == COMMANDS) commanded();
    else if (p->kind == TIMER) { if (read(timerfd, &expired, 8) == 8) { if (leaving) leave(); else pace(); } }
    else if (p->kind == CLIENT) receive(p);
    else if (ready.events & EPOLLIN) hear(p);
    else if (ready.events & (EPOLLERR | EPOLLHUP)) forget(p);
    else flow(p);
  }
}
