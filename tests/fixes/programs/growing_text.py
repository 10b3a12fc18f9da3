import time

log = ""
for epoch in range(30):
    for k in range(5):
        log += f"epoch {epoch} step {k}: " + "loss 0.25 " * 30000
        time.sleep(0.003)
    print(f"epoch {epoch}: last {log[-10:].strip()}", flush=True)
