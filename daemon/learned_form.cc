#include "daemon/learned_form.h"

#include <algorithm>

#include "connectors/llama/slot_file.h"
#include "connectors/llama/slot_tokens.h"
#include "daemon/slots/mapped_file.h"

namespace kvkeep::daemon {
namespace {

// Room for a slot of one token, whatever the model.
constexpr uint64_t kProbeBytes = 64 << 20;
// How many tokens more the second of two slots has whose sizes are compared.
constexpr size_t kProbeTokens = 32;

// Slot 0 after a prompt of so many tokens, as the server saves it.
Async<Found<std::shared_ptr<MappedFile>>> save_probe(Door& door, size_t tokens) {
  Found<std::shared_ptr<MappedFile>> found;
  found.obstacle.reason = "old_server";
  const std::optional<SlotFilePermit> permit = door.directory->reserve(kProbeBytes);
  std::vector<uint32_t> prompt(tokens, 1);
  const Status computed = co_await door.api.prefill(0, std::move(prompt));
  if (!computed.ok()) {
    found.obstacle.text = "the server does not compute a short prompt: " + computed.message();
    co_return found;
  }
  const Result<SlotAction> saved = co_await door.api.save_slot(0, permit->name());
  if (!saved.ok()) {
    found.obstacle.text = "the server does not save slots: " + saved.status().message() +
                          " (it needs /slots and --slot-save-path; take a newer llama-server)";
    co_return found;
  }
  const Result<std::shared_ptr<MappedFile>> memory = MappedFile::open(permit->path());
  if (!memory.ok()) {
    found.obstacle = {"slot_dir", "the server saves its slots somewhere else: " +
                                      memory.status().message() + " (give --slot-dir)"};
    co_return found;
  }
  found.value = *memory;
  co_return found;
}

// A state that cannot be cut: how long its files are, from two of them. What such a file says of
// itself is not known, so the options that shape it tell it from others.
Async<Found<SlotForm>> learn_whole_form(Door& door,
                                        const std::map<std::string, std::string>& cache_form,
                                        const MappedFile& one_token) {
  Found<SlotForm> found;
  const Result<llama::SlotTokens> head = llama::read_slot_tokens(one_token.bytes());
  if (!head.ok()) {
    found.obstacle = {"layout", "the server's slot files are of a kind that is not known: " +
                                    head.status().message()};
    co_return found;
  }
  Found<std::shared_ptr<MappedFile>> more = co_await save_probe(door, 1 + kProbeTokens);
  found.obstacle = more.obstacle;
  if (!more.value.has_value()) co_return found;
  const uint64_t first = one_token.bytes().size();
  const uint64_t longer = std::max<uint64_t>(first, (*more.value)->bytes().size());
  SlotForm form;
  form.whole = WholeForm{first, (longer - first) / kProbeTokens + 1};
  form.fields = cache_form;
  form.fields["state"] = "whole";
  form.fields["slot_file"] = std::to_string(head->version);
  form.fields["slots"] = std::to_string(door.props.slots);
  form.fields["slot_tokens"] = std::to_string(door.props.slot_tokens);
  form.fields["state_bytes"] = std::to_string(first) + "," + std::to_string(longer);
  found.value = std::move(form);
  co_return found;
}

}  // namespace

Async<Found<SlotForm>> learn_form(Door& door,
                                  const std::map<std::string, std::string>& cache_form) {
  Found<SlotForm> found;
  const std::optional<SlotReservation> slot = door.gate->try_acquire(0);
  Found<std::shared_ptr<MappedFile>> probe = co_await save_probe(door, 1);
  found.obstacle = probe.obstacle;
  if (!probe.value.has_value()) co_return found;
  const Result<llama::SlotFile> file =
      llama::parse_slot_file((*probe.value)->bytes(), *probe.value);
  if (file.ok()) {
    found.value = SlotForm{llama::layout_fields(file->layout), file->layout, std::nullopt};
  } else {
    door.log.info(
        "this model's state cannot be cut: slots are kept whole, and only chats that go on "
        "find them");
    door.log.debug(file.status().message());
    found = co_await learn_whole_form(door, cache_form, **probe.value);
  }
  const Status erased = co_await door.api.erase_slot(0);
  if (!erased.ok()) door.log.debug("slot 0 was not erased: " + erased.message());
  co_return found;
}

}  // namespace kvkeep::daemon
