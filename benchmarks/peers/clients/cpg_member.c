/* A member of a Corosync CPG group, with the commands of member_loop.py. Arguments: rank, members. */

#define _GNU_SOURCE
#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DIGEST_START UINT64_C(14695981039346656037)

enum { HEADER_BYTES = 8, PAYLOAD_MAX = 1 << 16, LINE_MAX_BYTES = 256, ATTEMPTS = 300 };

static uint32_t rank_here, members;
static uint64_t expected, received, digest = DIGEST_START;
static int64_t first_ns, last_ns;
static int64_t *sent_ns, *times_ns;
static uint32_t timed, joined;
static cpg_handle_t group;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void fail(const char *what, int error)
{
    fprintf(stderr, "cpg_member: %s: error %d\n", what, error);
    exit(1);
}

static void on_deliver(cpg_handle_t handle, const struct cpg_name *name, uint32_t node, uint32_t pid,
                       void *payload, size_t size)
{
    const uint8_t *bytes = payload;
    uint32_t header[2];
    int64_t now = now_ns();
    (void)handle, (void)name, (void)node, (void)pid, (void)size;
    if (received == 0)
        first_ns = now;
    for (int index = 0; index < HEADER_BYTES; index++)
        digest = (digest ^ bytes[index]) * UINT64_C(1099511628211); /* FNV-1a */
    memcpy(header, bytes, sizeof header);
    if (sent_ns != NULL && header[0] == rank_here)
        times_ns[timed++] = now - sent_ns[header[1]];
    received++;
    last_ns = now;
}

static void on_change(cpg_handle_t handle, const struct cpg_name *name, const struct cpg_address *all,
                      size_t count, const struct cpg_address *left, size_t left_count,
                      const struct cpg_address *came, size_t came_count)
{
    (void)handle, (void)name, (void)all, (void)left, (void)left_count, (void)came, (void)came_count;
    joined = count;
}

static void dispatch(int wait_ms)
{
    struct pollfd waiting = {.events = POLLIN};
    cpg_fd_get(group, &waiting.fd);
    if (poll(&waiting, 1, wait_ms) > 0)
        cpg_dispatch(group, CS_DISPATCH_ALL);
}

static void send_message(uint8_t *payload, uint32_t number, uint32_t size)
{
    uint32_t header[2] = {rank_here, number};
    struct iovec part = {payload, size};
    cs_error_t error;
    memcpy(payload, header, sizeof header);
    while ((error = cpg_mcast_joined(group, CPG_TYPE_AGREED, &part, 1)) == CS_ERR_TRY_AGAIN)
        dispatch(1);
    if (error != CS_OK)
        fail("cpg_mcast_joined", error);
}

static void run(uint32_t count, double rate, uint32_t size)
{
    uint8_t *payload = calloc(1, size);
    int64_t started = now_ns() + (rate > 0 ? (int64_t)(1e9 * rank_here / members / rate) : 0);
    for (uint32_t number = 0; number < count; number++) {
        int64_t due = rate > 0 ? started + (int64_t)(1e9 * number / rate) : 0;
        for (int64_t left = due - now_ns(); left > 0; left = due - now_ns()) {
            struct timespec until = {0, 0};
            struct pollfd waiting = {.events = POLLIN};
            until.tv_sec = left / 1000000000, until.tv_nsec = left % 1000000000;
            cpg_fd_get(group, &waiting.fd);
            if (ppoll(&waiting, 1, &until, NULL) > 0)
                cpg_dispatch(group, CS_DISPATCH_ALL);
        }
        if (sent_ns != NULL)
            sent_ns[number] = now_ns();
        send_message(payload, number, size);
        if (rate <= 0)
            dispatch(0);
    }
    while (received < expected)
        dispatch(1000);
    free(payload);
}

/* Add the digest, and be ready for the next messages: nobody sends any before all have answered. */
static void finish(void)
{
    printf(", \"digest\": \"%016llx\"}\n", (unsigned long long)digest);
    received = timed = 0;
    digest = DIGEST_START;
}

static void serve_rate(uint32_t count, uint32_t size)
{
    expected = (uint64_t)count * members;
    run(count, 0, size);
    printf("{\"rate\": %.1f", expected / ((last_ns - first_ns) / 1e9));
    finish();
}

static void serve_delivery(uint32_t count, double rate, uint32_t size)
{
    expected = (uint64_t)count * members;
    sent_ns = calloc(count, sizeof *sent_ns);
    times_ns = calloc(count, sizeof *times_ns);
    run(count, rate, size);
    printf("{\"times_us\": [");
    for (uint32_t index = 0; index < timed; index++)
        printf("%s%.1f", index ? "," : "", times_ns[index] / 1000.0);
    printf("]");
    finish();
    free(sent_ns), free(times_ns);
    sent_ns = times_ns = NULL;
}

int main(int argc, char **argv)
{
    cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_deliver, .cpg_confchg_fn = on_change};
    struct cpg_name name = {.length = 5, .value = "peers"};
    char line[LINE_MAX_BYTES];
    uint32_t count, size;
    double rate;
    cs_error_t error = CS_ERR_LIBRARY;
    if (argc != 3)
        fail("arguments: rank, members", argc);
    rank_here = atoi(argv[1]), members = atoi(argv[2]);
    for (int attempt = 0; attempt < ATTEMPTS && error != CS_OK; attempt++, usleep(100000))
        error = cpg_initialize(&group, &callbacks);
    if (error != CS_OK)
        fail("cpg_initialize", error);
    for (int attempt = 0; attempt < ATTEMPTS && (error = cpg_join(group, &name)) != CS_OK; attempt++)
        usleep(100000);
    if (error != CS_OK)
        fail("cpg_join", error);
    while (joined < members)
        dispatch(100);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("{\"ready\": true}\n");
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "rate %u %u", &count, &size) == 2 && size <= PAYLOAD_MAX)
            serve_rate(count, size);
        else if (sscanf(line, "delivery %u %lf %u", &count, &rate, &size) == 3 && size <= PAYLOAD_MAX)
            serve_delivery(count, rate, size);
        else
            fail("unknown command", 0);
    }
    cpg_finalize(group);
    return 0;
}
