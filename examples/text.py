"""Kernel PCA of sentences in three languages, with character n-grams.

The figure shows that most sentences lie close to others in the same language.  It is saved as
``out/text.png``.
"""

from pathlib import Path

import numpy as np
from sklearn.model_selection import cross_val_score

from mercer import SVC, KernelPCA
from mercer.kernels import BagOfNgrams, BagOfWords
from mercer.plotting import embedding

english = """the train to the city leaves at nine|we bought bread and cheese at the market|it
has been raining since this morning|my brother is reading the newspaper in the kitchen|the child
sleeps|where is the nearest station|she wrote him a long letter|in summer we go to the sea"""
german = """der Zug in die Stadt fährt um neun|wir haben auf dem Markt Brot und Käse gekauft|es
regnet seit heute morgen|mein Bruder liest in der Küche die Zeitung|das Kind schläft|wo ist der
nächste Bahnhof|sie schrieb ihm einen langen Brief|im Sommer fahren wir ans Meer"""
french = """le train pour la ville part à neuf heures|nous avons acheté du pain et du fromage au
marché|il pleut depuis ce matin|mon frère lit le journal dans la cuisine|l'enfant dort|où est
la gare la plus proche|elle lui a écrit une longue lettre|en été nous allons à la mer"""
# Remove line breaks; there are eight sentences in each language.
texts = [t.split() for page in (english, german, french) for t in page.split("|")]
texts, language = [" ".join(t) for t in texts], np.repeat(["English", "German", "French"], 8)

# %% Classify the language.  The tf-idf weights are computed from the training part of each fold.
for kernel in (BagOfWords(), BagOfWords(tfidf=False), BagOfNgrams((1, 3), sublinear_tf=True)):
    accuracy = cross_val_score(SVC(kernel=kernel, C=10.0), texts, language, cv=8).mean()
    print(f"accuracy {accuracy:4.0%} with {kernel}")
model = KernelPCA(2, kernel=BagOfNgrams((1, 3), sublinear_tf=True)).fit(texts)
(out := Path(__file__).resolve().parent.parent / "out").mkdir(exist_ok=True)
ax = embedding(model, language)
ax.set_title("24 sentences: kernel PCA with character n-grams")
ax.figure.savefig(out / "text.png", dpi=150)
