// LiveDoor: kvkeep before a FakeServer, with a store on disk, brought up as the program does it.
//
// Only tests use it.
//
// Threads: the io thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "daemon/door.h"
#include "daemon/testing/fake_server.h"
#include "daemon/testing/test_client.h"

namespace kvkeep::daemon {

class LiveDoor {
 public:
  static constexpr uint32_t kBlock = 16;  // Tokens.

  // `dir`: for the store and all other files, those of a LiveDoor before this one among them.
  explicit LiveDoor(const std::filesystem::path& dir, uint32_t slots = 2);
  // Stores what is under way, like a program that ends.
  ~LiveDoor();

  // Until prompts are kept or it is known why not.
  bool bring_up();

  net::io_context& io() { return io_; }
  Door& door() { return *door_; }
  FakeServer& server() { return *server_; }
  const std::filesystem::path& store() const { return door_->settings.dir; }

  std::unique_ptr<TestClient> connect();
  // Sends one request and waits for its answer, and for what is stored because of it. Status 0:
  // none came.
  Answer ask(const std::string& path, const std::string& body, const std::string& headers = "");
  // POST /completion of a text.
  Answer complete(const std::string& prompt, const std::string& more = "",
                  const std::string& headers = "");
  bool until(const std::function<bool()>& done) { return run_until(io_, done); }
  // Until nothing is being stored.
  bool until_kept();
  // Leaves everything where it is, for the destructor to find.
  void end_at_once() { ends_at_once_ = true; }

 private:
  Log log_;
  std::unique_ptr<Door> door_;  // Outlives the coroutines, which end with the io context.
  net::io_context io_{1};
  std::unique_ptr<FakeServer> server_;
  std::filesystem::path dir_;
  std::atomic<bool> stopping_{false};
  bool ends_at_once_ = false;
};

// {"prompt": …, more}; `more` begins with a comma.
std::string prompt_body(const std::string& prompt, const std::string& more = "");

// A text of `size` bytes that differs from others of another name in every block.
std::string text_of(const std::string& name, size_t size);

}  // namespace kvkeep::daemon
