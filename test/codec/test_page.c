/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/page.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"

#define BASE "http://tinker.test/services/x"

static void check_text(const tnk__page_t *page, const char *expected,
                       size_t row) {
  char text[TNK__MAX_PAGE_TEXT];
  const int is_told = tnk__page_explain(page, text, sizeof(text));

  if (strcmp(text, expected) != 0)
    test_fail(__FILE__, __LINE__, "row %zu: %s", row, text);
  CHECK_INT(is_told, expected[0] != '\0');
}

/* An answer with these parts to a body of 3 MB. */
static tnk__page_t page_of(int status, const char *server, const char *body) {
  return (tnk__page_t){.status = status,
                       .server = server,
                       .body = (const uint8_t *)body,
                       .body_len = strlen(body),
                       .sent_len = 3000000,
                       .base_url = BASE,
                       .path = "/api/v1/"};
}

#define NGINX "nginx/1.22.1"
#define SQUID_TITLE "ERROR: The requested URL could not be retrieved"

/* Pages as these programs write them. */
static const struct {
  int status;
  const char *server;
  const char *body;
  const char *text;
} pages[] = {
    {401, NGINX,
     "<html>\r\n<head><title>401 Authorization Required</title></head>\r\n"
     "<body>\r\n<center><h1>401 Authorization Required</h1></center>",
     "not the service but nginx/1.22.1 says \"401 Authorization Required\""},
    {502, NGINX, "<html>\r\n<head><title>502 Bad Gateway</title></head>",
     "not the service but nginx/1.22.1 says \"502 Bad Gateway\""},
    {413, NGINX,
     "<html><head><title>413 Request Entity Too Large</title></head>",
     "a body of 3.0 MB is too large for nginx/1.22.1"},
    {413, NULL, "",
     "a body of 3.0 MB is too large for what is before the "
     "service"},
    {400, NGINX,
     "<html><head><title>400 No required SSL certificate was sent</title>",
     "not the service but nginx/1.22.1 says \"400 No required SSL "
     "certificate was sent\""},
    {400, NGINX,
     "<html>\n<head><title>400 The plain HTTP request was sent to HTTPS "
     "port</title></head>\n",
     "not the service but nginx/1.22.1 says \"400 The plain HTTP request was "
     "sent to HTTPS port\"; begin TINKER_BASE_URL with https://"},
    {400, "Apache",
     "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n"
     "<title>400 Bad Request</title>\n</head><body>\n<p>Reason: You're "
     "speaking plain HTTP to an SSL-enabled server port.<br />",
     "not the service but Apache says \"400 Bad Request\"; begin "
     "TINKER_BASE_URL with https://"},
    {404, NGINX, "<html><head><title>404 Not Found</title></head>",
     "not the service but nginx/1.22.1 says \"404 Not Found\"; is " BASE
     " the right base URL?"},
    {405, NULL, "<title>405</title>",
     "not the service but a page says \"405\"; is " BASE
     " the right base URL?"},
    {503, NULL,
     "<html><body><h1>503 Service Unavailable</h1>\nNo server is available "
     "to handle this request.\n</body></html>\n",
     "not the service but a page says \"503 Service Unavailable No server is "
     "available to handle this request.\""},
    {403, NULL, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>",
     "not the service but a page says \"AccessDenied\""},
    {200, "portal",
     "\xef\xbb\xbf \n<!DOCTYPE html><TITLE lang=\"en\">Log in"
     "</TITLE>",
     "not the service but portal says \"Log in\""},
    {500, "x", "<html></html>", "a page of x, not an answer of the service"},
    {500, NULL, "<", "a page, not an answer of the service"},
    {503, "awselb/2.0", "", "without words, from awselb/2.0"},
    {503, NULL, "", ""},
    {500, NGINX, "{\"detail\":\"<html>\"}", ""},
    {500, "uvicorn", "Internal Server Error", ""},
    {413, "x", "too much", ""},
    {200, "x", "", ""},
};

TEST(pages_are_told_with_their_author_and_title) {
  for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
    const tnk__page_t page =
        page_of(pages[i].status, pages[i].server, pages[i].body);
    check_text(&page, pages[i].text, i);
    CHECK_INT(tnk__page_is(&page),
              strchr(pages[i].body, '<') != NULL && pages[i].body[0] != '{');
  }
}

TEST(who_answered_is_found_in_the_headers) {
  static const struct {
    const char *server;
    const char *via;
    const char *name;
  } rows[] = {
      {NULL, "1.1 localhost (squid/5.7)", "squid/5.7"},
      {NULL, "1.0 a (far), 1.1 near", "near"},
      {NULL, "1.1 a, HTTP/1.1 b (near/2)", "near/2"},
      {NULL, "1.1 google", "google"},
      {"nginx", "1.1 a (b)", "nginx"},
      {"", "1.1 a (b)", "b"},
      {"a\x1b[2J\xff\t"
       "b",
       NULL, "a?[2J??b"},
      {NULL, "1.1 ()", "()"},
      {NULL, "(", "a page"},
      {NULL, "", "a page"},
      {"0123456789012345678901234567890123456789012345678901234567890123456",
       NULL,
       "0123456789012345678901234567890123456789012345678901234567890123"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__page_t page = page_of(502, rows[i].server, "<title>t</title>");
    char expected[160];
    page.via = rows[i].via;
    snprintf(expected, sizeof(expected), "not the service but %s says \"t\"",
             rows[i].name);
    check_text(&page, expected, i);
  }
}

TEST(the_cause_that_squid_names_is_told) {
  tnk__page_t page =
      page_of(403, "squid/5.7", "<html><head>\n<title>" SQUID_TITLE "</title>");

  page.cause = "ERR_ACCESS_DENIED 0";
  check_text(&page,
             "not the service but squid/5.7 says \"" SQUID_TITLE
             "\" (ERR_ACCESS_DENIED)",
             0);
}

TEST(titles_are_made_harmless) {
  static const struct {
    const char *title;
    const char *text;
  } rows[] = {
      {"  a \r\n\t b  ", "a b"},
      {"a&amp;b &lt;c&gt; &quot;d&quot; &#65;&#x42;&#X43;",
       "a&b <c> \"d\" ABC"},
      {"&apos;&nbsp;&rsquo;", "' \xe2\x80\x99"},
      {"&unknown; &; &#; &#x; &#12a; & b", "&unknown; &; &#; &#x; &#12a; & b"},
      {"a&#27;[2Jb&#0;c&#x9b;d&#xd800;e&#x110000;f&#99999999;g",
       "a [2Jb c d e f g"},
      {"a\x1b[31mb\x07", "a [31mb"},
      {"a\xc2\x9b"
       "b",
       "a b"},
      {"a\xe2\x80\xae"
       "b&#x202e;c&#8206;d",
       "a b c d"},
      {"a\xff"
       "b\xc3",
       "a?b?"},
      {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82",
       "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"},
      {"&#x7ff;&#x800;&#xffff;&#x10000;",
       "\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char body[256];
    char expected[256];
    tnk__page_t page;
    snprintf(body, sizeof(body), "<title>%s</title>", rows[i].title);
    snprintf(expected, sizeof(expected), "not the service but x says \"%s\"",
             rows[i].text);
    page = page_of(502, "x", body);
    check_text(&page, expected, i);
  }
}

TEST(sizes_are_told_as_people_write_them) {
  tnk__page_t page = page_of(413, "x", "");

  page.sent_len = 999;
  check_text(&page, "a body of 999 bytes is too large for x", 0);
  page.sent_len = 1000;
  check_text(&page, "a body of 1.0 kB is too large for x", 1);
}

TEST(long_titles_and_pages_are_cut) {
  static char body[100000];
  tnk__page_t page = page_of(502, "x", "");
  char text[TNK__MAX_PAGE_TEXT];

  memset(body, 'w', sizeof(body));
  memcpy(body, "<title>", 7);
  page.body = (const uint8_t *)body;
  page.body_len = sizeof(body);
  CHECK(tnk__page_explain(&page, text, sizeof(text)));
  CHECK(strlen(text) < 200 && strstr(text, "www...\"") != NULL);
  /* A title that begins behind what is looked at is not found. */
  memset(body, ' ', sizeof(body));
  body[0] = '<';
  memcpy(body + 50000, "<title>t</title>", 16);
  CHECK(tnk__page_explain(&page, text, sizeof(text)));
  CHECK_STR(text, "a page of x, not an answer of the service");
}

/* Whatever is not to be seen is not told. */
TEST(scripts_and_comments_are_no_words) {
  const tnk__page_t page =
      page_of(502, "x",
              "<!-- a <b> --><style>c{}</style><script>d<e></script>f<br>g"
              "<script>h");

  check_text(&page, "not the service but x says \"f g\"", 0);
}

TEST(redirections_are_told_with_what_to_set) {
  static const struct {
    const char *location;
    const char *text;
  } rows[] = {
      {"https://tinker.test/services/x/api/v1/client/config",
       "redirects to https://tinker.test/services/x; set TINKER_BASE_URL to "
       "that"},
      {"https://u:p@h.test:8443/api/v1/a?key=v#f",
       "redirects to https://h.test:8443; set TINKER_BASE_URL to that"},
      {"HTTPS://h/api/v1/a?u=/api/v1/",
       "redirects to https://h; set TINKER_BASE_URL to that"},
      {"//h/api/v1/a", "redirects to http://h; set TINKER_BASE_URL to that"},
      {BASE "/api/v1/a", "redirects to " BASE ", where the answer came from"},
      {"https://login.test/sso?next=https://a:b@c",
       "redirects to https://login.test/sso, which is no call of the service; "
       "is " BASE " the right base URL?"},
      {"/login?token=1",
       "redirects to /login; is " BASE " the right base URL?"},
      {"ftp://u:p@h/x",
       "redirects to another page; is " BASE " the right base URL?"},
      {"/to/http://u:p@h",
       "redirects to /to/http; is " BASE " the right base URL?"},
      {"https://a/to/http://u:p@h",
       "redirects to https://a/to/http, which is no call of the service; "
       "is " BASE " the right base URL?"},
      {"?a=b", "redirects to another page; is " BASE " the right base URL?"},
      {"https://h/\x1b[2J\xff",
       "redirects to https://h/?[2J?, which is no call of the service; is " BASE
       " the right base URL?"},
      {"https://a@b@c/@d",
       "redirects to https://c/@d, which is no call of the service; is " BASE
       " the right base URL?"},
      {"", ""},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk__page_t page = page_of(308, NGINX, "");
    page.location = rows[i].location;
    check_text(&page, rows[i].text, i);
  }
}

/* A proxy that knows our credential may say it again. */
TEST(nothing_is_told_of_a_proxy_that_knows_a_secret) {
  tnk__page_t page = page_of(403, "secret", "<title>secret</title>");

  page.confidant = "proxy.test:3128";
  page.cause = page.via = page.location = "secret";
  check_text(
      &page,
      "the answer is of proxy proxy.test:3128, or of something behind it "
      "that is not the service",
      0);
  page.body_len = 0;
  check_text(&page, "", 1);
  page.status = 401;
  page.body_len = 6;
  check_text(
      &page,
      "the answer is of proxy proxy.test:3128, or of something behind it "
      "that is not the service; the user and password for the proxy may "
      "be wrong",
      3);
  page.status = 302;
  check_text(
      &page,
      "the answer is of proxy proxy.test:3128, or of something behind it "
      "that is not the service",
      2);
}

/* Of a page that was cut off before its body, the header tells. */
TEST(a_page_is_known_by_its_type) {
  tnk__page_t page = page_of(403, "tinyproxy/1.11.1", "");

  CHECK(!tnk__page_is(&page));
  page.type = "Text/HTML; charset=utf-8";
  CHECK(tnk__page_is(&page));
  check_text(&page, "a page of tinyproxy/1.11.1, not an answer of the service",
             0);
  page.type = "application/json";
  CHECK(!tnk__page_is(&page));
}
