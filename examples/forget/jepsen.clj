; SPDX-License-Identifier: MIT
;
; Jepsen starts LazyFS on each node as (lazyfs/bin), a path in /opt/jepsen/lazyfs. With a link to our
; `lazyfs` there, everything else of jepsen.lazyfs works: mount!, umount!, lose-unfsynced-writes!,
; checkpoint!, and the nemesis. jepsen.lazyfs/db builds LazyFS first, so it is replaced by a DB that
; only makes the link.
(ns forget.db
  (:require [jepsen [control :as c]
                    [db :as db]
                    [lazyfs :as lazyfs]]))

(defn link!
  "Makes our program the one that jepsen.lazyfs starts."
  []
  (c/su
    (c/exec :mkdir :-p (str lazyfs/dir "/lazyfs/build"))
    (c/exec :ln :-sf "/usr/local/bin/lazyfs" lazyfs/bin)))

(defrecord Forgetful [lazyfs]
  db/DB
  (setup! [_ test node]
    (link!)
    (lazyfs/mount! lazyfs))
  (teardown! [_ test node]
    (lazyfs/umount! lazyfs)))

(defn forgetful
  "A DB whose setup mounts a directory that forgets."
  [dir]
  (Forgetful. (lazyfs/lazyfs dir)))

(defn lose!
  "Without the FIFO: returns when it is done, and throws if it was not."
  [dir]
  (c/su (c/exec "/usr/local/bin/outage" :ctl dir :clear-cache)))
