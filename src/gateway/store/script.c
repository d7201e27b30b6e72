/* SPDX-License-Identifier: MIT */
#include "gateway/store/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/store/entry.h"

enum {
  MAX_KEY = 320,
  MAX_ARGS = 20,
  OPEN_MS = 3600000,  /* the gateway of an older request is dead */
  MARK_MS = 86400000, /* for how long a removed session is known */
  BATCH = 100,        /* sessions that one script looks at */
  MAX_DROP = 5000,    /* lines that one script removes, or one session */
  KEEP_MS = 1000,     /* how often sessions are removed */
  MAX_KEEP_MS = 60000 /* the same, while the server refuses it */
};

/* ---- Scripts ---- */

/* KEYS: writers, owners, counts, born.
 * ARGV: writer or "0", token of the process, what `born` was or "".
 * Returns the writer, the count of its lines, and `born`. The writer is 0 if
 * its number belongs to another process, or if the record is another one.
 *
 * The server may have become an older copy of itself that does not know the
 * process. The number is its own again unless another process has it.
 *
 * A new number is drawn by the token, between 2^20 and 2^21. An older copy does
 * not know which numbers it gave to later processes. If it counted, it would
 * give them a second time. The numbers of turns stay below 2^53. */
static const char claim_script[] =
    "local n,token=ARGV[1],ARGV[2]\n"
    "local born=redis.call('GET',KEYS[4])\n"
    "if n=='0' then\n"
    " if not born then\n"
    "  born=token\n"
    "  redis.call('SET',KEYS[4],born)\n"
    " end\n"
    " local k=1048576+tonumber(string.sub(token,1,5),16)\n"
    " repeat\n"
    "  n=string.format('%d',k)\n"
    "  k=k+1\n"
    " until redis.call('HSETNX',KEYS[2],n,token)==1\n"
    " redis.call('INCR',KEYS[1])\n"
    "else\n"
    " if born~=ARGV[3] then return {0,'0',''} end\n"
    " local owner=redis.call('HGET',KEYS[2],n)\n"
    " if not owner then\n"
    "  redis.call('HSET',KEYS[2],n,token)\n"
    "  redis.call('INCR',KEYS[1])\n"
    " elseif owner~=token then return {0,'0',born} end\n"
    "end\n"
    "return {tonumber(n),redis.call('HGET',KEYS[3],n) or '0',born}\n";

/* KEYS: lines, counts, removed, sessions, changed, of:SESSION, open:SESSION,
 * owners.
 * ARGV: writer, n, line, session or "", what it is, request, token, "1" if the
 * line may be appended although the one before it is missing.
 *
 * A process whose number is not its own may not write: -1.
 *
 * `counts` has the number of the last line of each writer. A line is refused if
 * the one before it is missing, and appended once however often it is sent.
 * The number is behind if the store has become an older copy of itself. The
 * writer learns of it, and first sends what it still has of the missing lines.
 *
 * A full store refuses the first command that needs memory. Nothing is written
 * before it. */
static const char append_script[] =
    "if redis.call('HGET',KEYS[8],ARGV[1])~=ARGV[7] then return -1 end\n"
    "local n=tonumber(ARGV[2])\n"
    "local last=tonumber(redis.call('HGET',KEYS[2],ARGV[1]) or '0')\n"
    "if n>last+1 and ARGV[8]~='1' then return 0 end\n"
    "local name=ARGV[4]\n"
    "if name~='' and redis.call('ZSCORE',KEYS[3],name) then\n"
    " if n>last then redis.call('HSET',KEYS[2],ARGV[1],ARGV[2]) end\n"
    " return false\n"
    "end\n"
    "if n<=last then return 1 end\n"
    "local id=redis.call('XADD',KEYS[1],'*','w',ARGV[1],'n',ARGV[2],'l',"
    "ARGV[3])\n"
    "redis.call('HSET',KEYS[2],ARGV[1],ARGV[2])\n"
    "if name=='' then return 1 end\n"
    "local ms=string.match(id,'^%d+')\n"
    "local is=ARGV[5]\n"
    "redis.call('RPUSH',KEYS[6],id)\n"
    "if is~='k' then redis.call('ZADD',KEYS[4],ms,name) end\n"
    "if is=='c' then redis.call('HSET',KEYS[5],name,id) end\n"
    "if is=='a' then redis.call('ZADD',KEYS[7],ms,ARGV[6]) end\n"
    "if is=='e' then redis.call('ZREM',KEYS[7],ARGV[6]) end\n"
    "return 1\n";

/* KEYS: lines, removed, sessions, changed, exported, forgotten.
 * ARGV: base, most sessions, most ms, only exported, rank, batch, a session
 * that stays, ms of requests, ms of marks, most lines.
 * Returns the rank to continue at, or -1 if there is nothing more to remove.
 *
 * Other clients wait while the script runs. So it stops after a number of
 * lines. A session is removed by one script, however many lines it has.
 *
 * A session without a turn may be one whose first request has failed and is
 * about to be repeated.
 *
 * `forgotten` has the time of the latest mark that was dropped. A process that
 * has read nothing since then may not know of a removed session. */
static const char keep_script[] =
    "local lines,removed,sessions=KEYS[1],KEYS[2],KEYS[3]\n"
    "local most,age=tonumber(ARGV[2]),tonumber(ARGV[3])\n"
    "local rank,batch=tonumber(ARGV[5]),tonumber(ARGV[6])\n"
    "local time=redis.call('TIME')\n"
    "local now=time[1]*1000+math.floor(time[2]/1000)\n"
    "local left=tonumber(ARGV[10])\n"
    "local function drop(name)\n"
    " local ids=redis.call('LRANGE',ARGV[1]..'of:'..name,0,-1)\n"
    " for i=1,#ids,1000 do\n"
    "  redis.call('XDEL',lines,unpack(ids,i,math.min(i+999,#ids)))\n"
    " end\n"
    " redis.call('DEL',ARGV[1]..'of:'..name,ARGV[1]..'open:'..name)\n"
    " left=left-#ids\n"
    "end\n"
    "local old=redis.call('ZRANGEBYSCORE',removed,'-inf',now-ARGV[9],"
    "'WITHSCORES','LIMIT',0,batch)\n"
    "for i=1,#old,2 do\n"
    " drop(old[i])\n"
    " redis.call('ZREM',removed,old[i])\n"
    " redis.call('SET',KEYS[6],old[i+1])\n"
    "end\n"
    "local n=redis.call('ZCARD',sessions)\n"
    "local all=redis.call('ZRANGE',sessions,rank,rank+batch-1,'WITHSCORES')\n"
    "local gone=0\n"
    "for i=1,#all,2 do\n"
    " local name,used=all[i],tonumber(all[i+1])\n"
    " local at=rank+(i-1)/2\n"
    " local is_due=most==0 and age==0\n"
    " if most>0 and n-at>most then is_due=true end\n"
    " if age>0 and used+age<=now then is_due=true end\n"
    " if not is_due then return -1 end\n"
    " if left<=0 then return at-gone end\n"
    " local changed=redis.call('HGET',KEYS[4],name)\n"
    " if name~=ARGV[7] and\n"
    "   redis.call('ZCOUNT',ARGV[1]..'open:'..name,now-ARGV[8],'+inf')==0\n"
    "   and (ARGV[4]=='0' or (not changed and used+ARGV[8]<=now) or\n"
    "   (changed and redis.call('HGET',KEYS[5],name)==changed)) then\n"
    "  drop(name)\n"
    "  redis.call('ZREM',sessions,name)\n"
    "  redis.call('HDEL',KEYS[4],name)\n"
    "  redis.call('HDEL',KEYS[5],name)\n"
    "  local id=redis.call('XADD',lines,'*','w','0','n','0','l',"
    "'{\"type\":\"removed\",\"session\":'..cjson.encode(name)..'}')\n"
    "  redis.call('RPUSH',ARGV[1]..'of:'..name,id)\n"
    "  redis.call('ZADD',removed,string.match(id,'^%d+'),name)\n"
    "  gone=gone+1\n"
    " end\n"
    "end\n"
    "if #all<2*batch then return -1 end\n"
    "return rank+batch-gone\n";

/* KEYS: lines, removed, changed, exported, of:SESSION, marks:TOKEN.
 * ARGV: session, line, id of the last change that is exported, n, seconds.
 *
 * A mark whose reply was lost is sent again. */
static const char mark_script[] =
    "if tonumber(ARGV[4])<=tonumber(redis.call('GET',KEYS[6]) or '0') then\n"
    " return 1\n"
    "end\n"
    "if redis.call('ZSCORE',KEYS[2],ARGV[1]) then return false end\n"
    "if ARGV[2]~='' then\n"
    " redis.call('RPUSH',KEYS[5],redis.call('XADD',KEYS[1],'*','w','0','n','0',"
    "'l',ARGV[2]))\n"
    "end\n"
    "if ARGV[3]~='' and redis.call('HGET',KEYS[3],ARGV[1])==ARGV[3] then\n"
    " redis.call('HSET',KEYS[4],ARGV[1],ARGV[3])\n"
    "end\n"
    "redis.call('SET',KEYS[6],ARGV[4],'EX',ARGV[5])\n"
    "return 1\n";

/* ---- Commands ---- */

typedef struct {
  const char *argv[MAX_ARGS];
  size_t lens[MAX_ARGS];
  int n;
  char keys[8][MAX_KEY];
  int n_keys;
} command_t;

static void put_bytes(command_t *command, const void *bytes, size_t n) {
  command->argv[command->n] = bytes;
  command->lens[command->n++] = n;
}

static void put(command_t *command, const char *text) {
  put_bytes(command, text, strlen(text));
}

/* The name of a key: the common part, a word, and a session or "". */
static void put_key(command_t *command, const char *base, const char *word,
                    const char *session) {
  char *key = command->keys[command->n_keys++];

  (void)snprintf(key, MAX_KEY, "%s%s%s", base, word, session);
  put(command, key);
}

static long long format(char **out, command_t *command) {
  *out = NULL;
  return redisFormatCommandArgv(out, command->n, command->argv, command->lens);
}

long long tnk__gw_script_load(char **out, int is_mark) {
  command_t command = {.n = 0};

  put(&command, "SCRIPT");
  put(&command, "LOAD");
  put(&command, is_mark ? mark_script : append_script);
  return format(out, &command);
}

long long tnk__gw_script_claim(char **out, const tnk__gw_script_claim_t *what) {
  command_t command = {.n = 0};

  put(&command, "EVAL");
  put(&command, claim_script);
  put(&command, "4");
  put_key(&command, what->base, "writers", "");
  put_key(&command, what->base, "owners", "");
  put_key(&command, what->base, "counts", "");
  put_key(&command, what->base, "born", "");
  put(&command, what->writer);
  put(&command, what->token);
  put(&command, what->born);
  return format(out, &command);
}

/* What is before the digest: two digits count the words. */
enum { N_BEFORE_SHA = sizeof("*17\r\n$7\r\nEVALSHA\r\n$40\r\n") - 1 };

static const char no_sha[] = "0000000000000000000000000000000000000000";

long long tnk__gw_script_line(char **out, const tnk__gw_script_line_t *what) {
  static const char *const kinds[] = {
      [TNK__GW_IS_NOTE] = "n",   [TNK__GW_IS_KEY] = "k",
      [TNK__GW_IS_CHANGE] = "c", [TNK__GW_IS_TURN] = "c",
      [TNK__GW_IS_ASKED] = "a",  [TNK__GW_IS_ENDED] = "e",
  };
  const tnk__gw_about_t none = {.session = NULL};
  const tnk__gw_about_t *about = what->about != NULL ? what->about : &none;
  const char *session = about->session != NULL ? about->session : "";
  command_t command = {.n = 0};
  char request[24];

  (void)snprintf(request, sizeof(request), "%" PRIu64, about->number);
  put(&command, "EVALSHA");
  put(&command, no_sha);
  put(&command, "8");
  put_key(&command, what->base, "lines", "");
  put_key(&command, what->base, "counts", "");
  put_key(&command, what->base, "removed", "");
  put_key(&command, what->base, "sessions", "");
  put_key(&command, what->base, "changed", "");
  put_key(&command, what->base, "of:", session);
  put_key(&command, what->base, "open:", session);
  put_key(&command, what->base, "owners", "");
  put(&command, what->writer);
  put(&command, what->n);
  put_bytes(&command, what->line, what->n_line);
  put(&command, session);
  put(&command, kinds[about->is]);
  put(&command, request);
  put(&command, what->token);
  put(&command, "0");
  return format(out, &command);
}

void tnk__gw_script_sign(char *command, const char sha[TNK__GW_SCRIPT_SHA]) {
  memcpy(command + N_BEFORE_SHA, sha, TNK__GW_SCRIPT_SHA);
}

void tnk__gw_script_set_first(char *command, size_t n, int is_first) {
  command[n - strlen("0\r\n")] = is_first ? '1' : '0';
}

static long long format_keep(char **out, const char *base,
                             const tnk__gw_keep_t *keep, uint64_t rank) {
  command_t command = {.n = 0};
  const uint64_t numbers[] = {keep->max_sessions, keep->max_age_ms,
                              keep->only_exported != 0, rank, BATCH};
  char texts[5][24], open_ms[24], mark_ms[24], lines[24];

  put(&command, "EVAL");
  put(&command, keep_script);
  put(&command, "6");
  put_key(&command, base, "lines", "");
  put_key(&command, base, "removed", "");
  put_key(&command, base, "sessions", "");
  put_key(&command, base, "changed", "");
  put_key(&command, base, "exported", "");
  put_key(&command, base, "forgotten", "");
  put(&command, base);
  for (size_t i = 0; i < 5; i++) {
    (void)snprintf(texts[i], sizeof(texts[i]), "%" PRIu64, numbers[i]);
    put(&command, texts[i]);
  }
  put(&command, TNK__GW_UNNAMED);
  (void)snprintf(open_ms, sizeof(open_ms), "%d", OPEN_MS);
  (void)snprintf(mark_ms, sizeof(mark_ms), "%d", MARK_MS);
  (void)snprintf(lines, sizeof(lines), "%d", MAX_DROP);
  put(&command, open_ms);
  put(&command, mark_ms);
  put(&command, lines);
  return format(out, &command);
}

long long tnk__gw_script_mark(char **out, const tnk__gw_script_mark_t *what) {
  command_t command = {.n = 0};
  char seconds[24];

  put(&command, "EVALSHA");
  put(&command, no_sha);
  (void)snprintf(seconds, sizeof(seconds), "%d", MARK_MS / 1000);
  put(&command, "6");
  put_key(&command, what->base, "lines", "");
  put_key(&command, what->base, "removed", "");
  put_key(&command, what->base, "changed", "");
  put_key(&command, what->base, "exported", "");
  put_key(&command, what->base, "of:", what->session);
  put_key(&command, what->base, "marks:", what->token);
  put(&command, what->session);
  put_bytes(&command, what->n_line > 0 ? what->line : "", what->n_line);
  put(&command, what->changed);
  put(&command, what->n);
  put(&command, seconds);
  return format(out, &command);
}

/* ---- When sessions are removed ---- */

void tnk__gw_keeper_init(tnk__gw_keeper_t *keeper) {
  *keeper = (tnk__gw_keeper_t){.wait_ms = KEEP_MS};
}

void tnk__gw_keeper_stop(tnk__gw_keeper_t *keeper) {
  keeper->is_running = keeper->has_more = 0;
}

int tnk__gw_keeper_is_due(const tnk__gw_keeper_t *keeper,
                          const tnk__gw_keep_t *keep, uint64_t now_ms) {
  if (keep->max_sessions == 0 && keep->max_age_ms == 0 && !keep->only_exported)
    return 0;
  return !keeper->is_running &&
         (keeper->has_more || now_ms - keeper->last_ms >= keeper->wait_ms);
}

long long tnk__gw_keeper_begin(tnk__gw_keeper_t *keeper, char **out,
                               const char *base, const tnk__gw_keep_t *keep,
                               uint64_t now_ms) {
  keeper->last_ms = now_ms;
  keeper->is_running = 1;
  return format_keep(out, base, keep, keeper->has_more ? keeper->rank : 0);
}

int tnk__gw_keeper_take(tnk__gw_keeper_t *keeper, const redisReply *reply) {
  char why[sizeof(keeper->why)] = "";
  int has_changed;

  tnk__gw_keeper_stop(keeper);
  if (reply->type == REDIS_REPLY_ERROR)
    tnk__gw_error_text(reply->str, why, sizeof(why));
  else if (reply->type != REDIS_REPLY_INTEGER)
    return -1;
  has_changed = strcmp(why, keeper->why) != 0;
  memcpy(keeper->why, why, sizeof(why));
  if (why[0] != '\0') {
    keeper->wait_ms =
        keeper->wait_ms * 2 < MAX_KEEP_MS ? keeper->wait_ms * 2 : MAX_KEEP_MS;
    return has_changed;
  }
  keeper->wait_ms = KEEP_MS;
  keeper->has_more = reply->integer >= 0;
  keeper->rank = (uint64_t)reply->integer;
  return has_changed;
}
