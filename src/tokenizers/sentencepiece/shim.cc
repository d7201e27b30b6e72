/* SPDX-License-Identifier: MIT */
#include "tokenizers/sentencepiece/shim.h"

#include <sentencepiece_processor.h>

#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "tnk/error.h"

struct tnk__sp {
  const tnk__sp_calls_t *calls = &tnk__sp_shim;
  sentencepiece::SentencePieceProcessor processor;
};

/* Run `body`, and convert exceptions to codes. */
template <typename Body> static int guard(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return TNK_ENOMEM;
  } catch (...) {
    return TNK_EINTERNAL;
  }
}

static int sp_create(tnk__sp_t **out, const void *data, size_t n, char *why,
                     size_t why_size) {
  tnk__sp_t *sp = new (std::nothrow) tnk__sp_t;
  int err;

  *out = nullptr;
  why[0] = '\0';
  if (sp == nullptr)
    return TNK_ENOMEM;
  err = guard([&] {
    auto status = sp->processor.LoadFromSerializedProto(
        {static_cast<const char *>(data), n});

    if (status.ok() && sp->processor.GetPieceSize() > 0)
      return static_cast<int>(TNK_OK);
    std::snprintf(why, why_size, "%s", status.message());
    return static_cast<int>(TNK_EPROTO);
  });
  if (err == TNK_OK)
    *out = sp;
  else
    delete sp;
  return err;
}

static void sp_destroy(tnk__sp_t *sp) {
  delete sp;
}

static int32_t sp_size(const tnk__sp_t *sp) {
  return static_cast<int32_t>(sp->processor.GetPieceSize());
}

static int32_t checked(const tnk__sp_t *sp, int id) {
  return id >= 0 && id < sp->processor.GetPieceSize() ? id : -1;
}

static int32_t sp_bos(const tnk__sp_t *sp) {
  int32_t id = -1;

  (void)guard([&] {
    id = checked(sp, sp->processor.bos_id());
    return 0;
  });
  return id;
}

static int32_t sp_eos(const tnk__sp_t *sp) {
  int32_t id = -1;

  (void)guard([&] {
    id = checked(sp, sp->processor.eos_id());
    return 0;
  });
  return id;
}

static const char *sp_piece(const tnk__sp_t *sp, int32_t id, size_t *n,
                            tnk__sp_kind_t *kind) {
  const std::string *piece = nullptr;

  if (checked(sp, id) < 0)
    return nullptr;
  (void)guard([&] {
    *kind = sp->processor.IsControl(id)   ? TNK__SP_CONTROL
            : sp->processor.IsUnknown(id) ? TNK__SP_UNKNOWN
            : sp->processor.IsByte(id)    ? TNK__SP_BYTE
                                          : TNK__SP_NORMAL;
    piece = &sp->processor.IdToPiece(id);
    return 0;
  });
  if (piece == nullptr)
    return nullptr;
  *n = piece->size();
  return piece->data();
}

static int
sp_encode(const tnk__sp_t *sp, const char *text, size_t n, int with_places,
          int (*put)(void *user, int32_t id, size_t begin, size_t end),
          void *user) {
  return guard([&] {
    int err = TNK_OK;

    if (!with_places) {
      std::vector<int> ids;

      if (!sp->processor.Encode({text, n}, &ids).ok())
        return static_cast<int>(TNK_EINTERNAL);
      for (size_t i = 0; i < ids.size() && err == TNK_OK; i++)
        err = put(user, ids[i], 0, 0);
      return err;
    }
    sentencepiece::ImmutableSentencePieceText result;

    if (!sp->processor.Encode({text, n}, result.mutable_proto()).ok())
      return static_cast<int>(TNK_EINTERNAL);
    for (const auto &piece : result.pieces()) {
      err = put(user, static_cast<int32_t>(piece.id()), piece.begin(),
                piece.end());
      if (err < 0)
        break;
    }
    return err;
  });
}

static int sp_decode(const tnk__sp_t *sp, const int32_t *ids, size_t n,
                     int (*put)(void *user, const char *text, size_t n),
                     void *user) {
  return guard([&] {
    std::vector<int> known;
    std::string text;

    known.reserve(n);
    for (size_t i = 0; i < n; i++)
      if (checked(sp, ids[i]) >= 0)
        known.push_back(ids[i]);
    if (!sp->processor.Decode(known, &text).ok())
      return static_cast<int>(TNK_EINTERNAL);
    return put(user, text.data(), text.size());
  });
}

const tnk__sp_calls_t tnk__sp_shim = {sp_create, sp_destroy, sp_size,
                                      sp_bos,    sp_eos,     sp_piece,
                                      sp_encode, sp_decode};
