#include "daemon/testing/live_door.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fstream>

#include "daemon/session.h"
#include "daemon/startup.h"

namespace kvkeep::daemon {
namespace {

StoreSettings settings_in(const std::filesystem::path& dir) {
  StoreSettings settings;
  settings.dir = dir / "store";
  settings.max_size = 64 << 20;
  settings.block_size = LiveDoor::kBlock;
  return settings;
}

}  // namespace

LiveDoor::LiveDoor(const std::filesystem::path& dir, uint32_t slots)
    : log_({LogLevel::kError, false}), dir_(dir) {
  const std::filesystem::path slot_dir = dir / "slots", model = dir / "model.gguf";
  std::filesystem::create_directories(slot_dir);
  std::ofstream(model) << "a model";
  server_ = std::make_unique<FakeServer>(io_, slot_dir, slots);
  server_->model_path = model.string();
  door_ = std::make_unique<Door>(io_, server_->address(), log_, settings_in(dir));
  door_->directory = *SlotDirectory::use(slot_dir);
}

LiveDoor::~LiveDoor() {
  if (!ends_at_once_) {
    server_->resume();
    until_kept();
  }
  door_->settling.reset();
  door_->restoring.join();
  door_->keeping.join();
  if (door_->store != nullptr) (void)door_->store->close();
}

bool LiveDoor::bring_up() {
  IdentitySettings settings;
  settings.digest_book = dir_ / "digests.json";
  net::co_spawn(io_, daemon::bring_up(*door_, settings, stopping_), net::detached);
  const bool settled = until([this] { return door_->is_settled; });
  server_->requests.clear();
  return settled && door_->is_ready();
}

std::unique_ptr<TestClient> LiveDoor::connect() {
  auto client = std::make_unique<TestClient>(io_);
  net::co_spawn(io_, serve_client(*door_, client->other_end()), net::detached);
  return client;
}

Answer LiveDoor::ask(const std::string& path, const std::string& body, const std::string& headers) {
  const std::unique_ptr<TestClient> client = connect();
  client->send(request_text(body.empty() ? "GET" : "POST", path, body, headers));
  std::optional<Answer> answer;
  until([&] { return (answer = client->take_answer()).has_value() || client->was_closed(); });
  until_kept();
  return answer.value_or(Answer());
}

Answer LiveDoor::complete(const std::string& prompt, const std::string& more,
                          const std::string& headers) {
  return ask("/completion", prompt_body(prompt, more), headers);
}

bool LiveDoor::until_kept() {
  run_ready(io_);
  return until([this] { return door_->saves_running == 0; });
}

std::string prompt_body(const std::string& prompt, const std::string& more) {
  return "{\"prompt\":" + nlohmann::json(prompt).dump() + more + "}";
}

std::string text_of(const std::string& name, size_t size) {
  std::string text;
  for (size_t i = 0; text.size() < size; ++i) text += name + std::to_string(i) + " ";
  return text.substr(0, size);
}

}  // namespace kvkeep::daemon
